// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "compiler/optimize/names.h"
#include "core/programs/graph.h"

namespace heddle::compiler {

bool IsNumeric(ValueType type);
/// True if the node is a scalar and no string, whatever the variables in `numbers` hold.
bool IsNumber(const Graph& graph, NodeId id, const SharedNames& numbers);

/// All rounds of a loop at once. `body` is what one round does, `counter` its variable, which goes from
/// `from` to `to` (literals or variables, whole numbers, from <= to). nullopt where it does anything but:
///  - read rows (or columns) `counter` of matrices that it does not change, X[i,], X[i,3], X[i+1,3], and
///  combine them cell by cell
///    with each other and with scalars that are the same in every round, sum them, or multiply them by a
///    matrix;
///  - write such values to the same rows (or columns) of a matrix, which it may read there as well;
///  - add them up, or multiply, or find the smallest or largest, in a scalar of `numbers`;
///  - assign one to a variable: the last round's remains.
/// Sums are added in the order of sum(), not in that of the rounds.
std::optional<Graph> VectorizeBody(const Graph& body, const std::string& counter, const Node& from,
                                   const Node& to, const SharedNames& numbers);

}  // namespace heddle::compiler
