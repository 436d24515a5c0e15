// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/programs/graph.h"

namespace heddle::compiler {

/// Operator of a pattern that stands for a chain of cell-wise operators: attribute name, one input (rules.h).
constexpr std::string_view kContext = "context";

/// One side of a rule as a graph: letters are "variable" nodes typed by their case, the value is assigned to
/// "r". t(X) %*% Y is t%*% as in every graph; min(a, b) is pmin. The text is ours: anything wrong with it is
/// a bug and stops.
Graph CompilePattern(std::string_view text);

/// The node that a pattern's "r" is.
NodeId RootOf(const Graph& pattern);

}  // namespace heddle::compiler
