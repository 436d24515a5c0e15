// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::ops {

/// Which rows of a table are equal: words that come again in the leaves of a batch.
struct DistinctRows {
  std::vector<int64_t> first;   ///< Of each distinct row, in the order in which they come first.
  std::vector<int32_t> row_of;  ///< Of each row: its place in `first`.
};

/// `columns` lie one after the other, each of `rows` numbers. Equal are numbers of the same bits.
DistinctRows FindDistinctRows(std::span<const double> columns, int64_t rows);

}  // namespace heddle::ops
