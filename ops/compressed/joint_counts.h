// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/values/column_groups.h"

namespace heddle::ops {

/// Some rows of a column group, from row `first` of it on; the group is not kUncompressed.
struct GroupRows {
  const ColumnGroup* group;
  int64_t first = 0;

  int64_t tuples() const { return group->encoding == Encoding::kEmpty ? 1 : group->tuples(); }
  /// Of rows [begin, end) of these; 0 of kEmpty.
  void ReadCodes(int64_t begin, int64_t end, uint16_t* codes) const;
};
/// The rows of a compressed matrix of one group.
inline GroupRows RowsOfGroup(const Matrix& compressed, size_t group = 0) {
  return {&compressed.groups().groups[group], compressed.first_row()};
}

/// Which rows have which tuples of two groups: place a * b.tuples() + b is of tuple a of the first one and b
/// of the second one.
struct JointCounts {
  std::vector<int64_t> rows;    ///< How many have both.
  std::vector<double> weights;  ///< The sum of their weights, where there are some.
};

/// More places take longer than what is counted.
constexpr int64_t kMostJointTuples = 1 << 16;

/// Of the first `rows` rows, on all threads. `weights`: of each row, the cell of the only column of that
/// group; their sums are exact in any order (the caller knows). nullopt beyond kMostJointTuples.
std::optional<JointCounts> CountJointTuples(const GroupRows& a, const GroupRows& b, int64_t rows,
                                            const GroupRows* weights = nullptr);

}  // namespace heddle::ops
