// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "compiler/recursion/class_body.h"

// Rows whose ranges of columns are assigned to one after the other: g[1, 1:H] = a, and what derivatives make
// of reading g[, 1:H].
namespace heddle::compiler {

/// The values assigned to node `id`, a row, in the order of their columns, where these are known, do not
/// overlap and are all of the row's; nullopt where not.
std::optional<std::vector<NodeId>> AssignedParts(const Graph& graph, NodeId id);

/// Puts such rows together by cbind, so that each value is written where it belongs, and reads ranges from
/// the row before the assignments that do not touch them. Keeps every bit.
ClassGraph JoinAssigned(const ClassGraph& given);

}  // namespace heddle::compiler
