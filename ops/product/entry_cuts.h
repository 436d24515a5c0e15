// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/values/matrix.h"
#include "core/values/panels.h"
#include "ops/base/parallel.h"

namespace heddle::ops {

/// Where the entries of each row of a CSR matrix pass from one block of `width` columns to the next: a table,
/// or searched for where the table would be larger than the matrix. The matrix outlives it.
class EntryCuts {
 public:
  EntryCuts(const Matrix& x, int64_t width)
      : x_(x), width_(width), blocks_(x.IsSparse() ? CeilDivide(x.columns(), width) : 1) {
    if (blocks_ < 2 || blocks_ - 1 > x.stored() / std::max<int64_t>(1, x.rows())) return;
    cuts_.resize(static_cast<size_t>(x.rows() * (blocks_ - 1)));
    ParallelFor(x.rows(), 1024, [&](int64_t begin, int64_t end) {
      const int32_t* columns = x.column_indexes();
      for (int64_t i = begin; i < end; ++i) {
        const int32_t *from = columns + x.row_offsets()[i], *const last = columns + x.row_offsets()[i + 1];
        for (int64_t b = 1; b < blocks_; ++b) {
          from = std::lower_bound(from, last, b * width_);
          cuts_[static_cast<size_t>((b - 1) * x.rows() + i)] = from - columns;
        }
      }
    });
  }

  /// Entries [first, last) of a row in the block that begins at column `begin`.
  std::pair<int64_t, int64_t> Of(int64_t row, int64_t begin) const {
    const int64_t block = begin / width_, at = block * x_.rows() + row;
    if (cuts_.empty() && blocks_ > 1) return Search(row, begin);
    return {block == 0 ? x_.row_offsets()[row] : cuts_[static_cast<size_t>(at - x_.rows())],
            block == blocks_ - 1 ? x_.row_offsets()[row + 1] : cuts_[static_cast<size_t>(at)]};
  }

 private:
  std::pair<int64_t, int64_t> Search(int64_t row, int64_t begin) const {
    const int32_t* columns = x_.column_indexes();
    const int32_t *const first = columns + x_.row_offsets()[row], *const last =
                                                                      columns + x_.row_offsets()[row + 1];
    const int32_t* const from = std::lower_bound(first, last, begin);
    return {from - columns, std::lower_bound(from, last, begin + width_) - columns};
  }

  const Matrix& x_;
  int64_t width_, blocks_;
  std::vector<int64_t> cuts_;
};

}  // namespace heddle::ops
