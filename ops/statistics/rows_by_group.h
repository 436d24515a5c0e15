// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/status.h"
#include "core/values/matrix.h"

// aggregate() of many groups: its rows in the order of their groups.
namespace heddle::ops {

/// The rows of a group: places [begin, end) of Grouping::rows.
struct Run {
  int64_t group;  ///< 0-based
  int64_t begin;
  int64_t end;
};

/// The rows of each group that occurs, ascending.
struct Grouping {
  std::vector<int64_t> rows;
  std::vector<Run> runs;
};

/// A row whose group is none: it is below 1, or larger than a matrix has rows.
struct WrongGroup {
  int64_t row;  ///< Of all rows, 0-based.
  double group;
  Status ToStatus() const;
};

/// The number of the group of each row, 0-based; -1 for those that are not wanted. `most` groups, or
/// kUnknown. Stops at the first row whose group is none, which is told; rows are counted from `row_begin`.
Result<std::vector<int64_t>> ReadGroups(const Matrix& groups, int64_t most, int64_t row_begin,
                                        std::optional<WrongGroup>* wrong);
/// Stable, so that rows of a group keep their order.
Grouping GroupRows(const std::vector<int64_t>& numbers);

}  // namespace heddle::ops
