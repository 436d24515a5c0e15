// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/values/value.h"
#include "ops/statistics/group_payload.h"
#include "ops/statistics/rows_by_group.h"

// Partial values of aggregate(): what ranks send each other of their rows (docs/numerics.md, section 2). A
// row tells of a group in a node of the reduction tree: a panel of the node, the group, its payload.
namespace heddle::ops {

/// The list of such rows, one behind the other.
Result<Value> ListOfGroups(const std::vector<double>& cells, const GroupPayload& payload);
/// The list of a rank one of whose rows has a group that is none: whoever finishes fails with the first of
/// all.
Result<Value> ListOfWrongGroup(const WrongGroup& wrong, const GroupPayload& payload);

/// Adds the rows of a group some of whose sums have left the range of doubles. `finite`: by column, whether
/// all cells are finite.
void AddWideRows(const GroupPayload& payload, int64_t group, const std::vector<bool>& finite,
                 const GroupTree<WideNumber>& tree, std::vector<double>* cells);

/// The rows of groups [begin, end) of some lists, and those of wrong groups.
Result<Matrix> RowsOfGroups(std::span<const Value* const> lists, int64_t begin, int64_t end);

/// The results of groups [first, first + count), a row each, from the rows of all lists. kUnknown: as many as
/// the largest group says. Errors: the first wrong group.
Result<Matrix> FinishGroups(const Matrix& list, const GroupPayload& payload, int64_t columns, int64_t first,
                            int64_t count);

}  // namespace heddle::ops
