// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/run/distinct_rows.h"

#include <bit>

#include "core/hash.h"

namespace heddle::ops {

DistinctRows FindDistinctRows(std::span<const double> columns, int64_t rows) {
  DistinctRows out;
  out.row_of.resize(static_cast<size_t>(rows));
  const size_t width = rows == 0 ? 0 : columns.size() / static_cast<size_t>(rows);
  const auto bits = [&](size_t column, int64_t row) {
    return std::bit_cast<uint64_t>(columns[column * static_cast<size_t>(rows) + static_cast<size_t>(row)]);
  };
  // Open addressing, half full at most. Low bits of whole numbers are zeros, and stay zeros in products: a
  // place is what the highest bits of the hash say.
  const size_t mask = std::bit_ceil(2 * static_cast<size_t>(rows) + 1) - 1;
  const int unused_bits = 64 - std::bit_width(mask);
  std::vector<int32_t> table(mask + 1, -1);
  for (int64_t row = 0; row < rows; ++row) {
    uint64_t hash = 0;
    for (size_t c = 0; c < width; ++c) hash = FoldHash(hash, bits(c, row));
    hash = FoldHash(hash, uint64_t{0});
    const auto is_same = [&](int32_t distinct) {
      for (size_t c = 0; c < width; ++c)
        if (bits(c, row) != bits(c, out.first[static_cast<size_t>(distinct)])) return false;
      return true;
    };
    size_t at = hash >> unused_bits;
    while (table[at] >= 0 && !is_same(table[at])) at = (at + 1) & mask;
    if (table[at] < 0) {
      table[at] = static_cast<int32_t>(out.first.size());
      out.first.push_back(row);
    }
    out.row_of[static_cast<size_t>(row)] = table[at];
  }
  return out;
}

}  // namespace heddle::ops
