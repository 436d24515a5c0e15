// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/values/matrix.h"
#include "ops/base/cpu.h"

// The entries of some rows of a CSR matrix read the rows of a dense matrix that their columns name. Where
// those rows are long and all of them are more than the second-level cache holds, they are read block after
// block: the entries of many rows that name rows of one block, then those of the next. The entries of one row
// keep their order.
namespace heddle::ops {

/// So many entries at a time pay: each row of a block is read about once or more, and their values stay in
/// the second-level cache, too.
constexpr int64_t kEntriesTogether = 1 << 15;

/// Rows of `gathered` in a block; 0: the entries of CSR `w` read it row after row.
inline int64_t GatheredBlock(const Matrix& w, const Matrix& gathered) {
  constexpr int64_t kLeastCells = 64, kLeastBytes = 4 << 20, kLeastOfRow = 4;
  const int64_t row_bytes = gathered.columns() * static_cast<int64_t>(sizeof(double));
  if (gathered.columns() < kLeastCells || gathered.rows() * row_bytes < kLeastBytes) return 0;
  const int64_t block = std::max<int64_t>(1, SecondLevelCacheBytes() / 4 / row_bytes);
  // Fewer entries of a row in a block would not repay the way from row to row.
  return w.stored() / std::max<int64_t>(w.rows(), 1) * block >= kLeastOfRow * gathered.rows() ? block : 0;
}

/// Calls run(i, first, last) for i of `rows` rows and their entries [first, last) within one block of `block`
/// columns.
template <typename Run>
void ForBlocks(const int64_t* offsets, const int32_t* columns, int64_t rows, int64_t all_columns,
               int64_t block, const Run& run) {
  std::vector<int64_t> next(offsets, offsets + rows);
  for (int64_t end = block; end < all_columns + block; end += block)
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t first = next[static_cast<size_t>(i)];
      int64_t last = first;
      while (last < offsets[i + 1] && columns[last] < end) ++last;
      next[static_cast<size_t>(i)] = last;
      if (first < last) run(i, first, last);
    }
}

}  // namespace heddle::ops
