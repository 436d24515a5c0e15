// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/matrix.h"

namespace heddle::ops {

/// Where the entries of the last CSR row lie that was spread out: one place a column. Nothing is cleared
/// between rows; a place counts only if it is one of the row's.
struct SpreadRow {
  std::vector<uint32_t> places;
  int64_t base = 0;  ///< Entry number of place 0.
};

/// Doubles that GatherCells may write past the last cell.
constexpr int64_t kGatherOverrun = 8;

/// The cells of x (dense or CSR) at the entries of rows [begin, end) of `pattern`, a CSR matrix of its shape,
/// in their order; 0.0 where a CSR x has no entry. `spread` serves calls with one and the same x and is empty
/// at first. Cost: a few cycles an entry of `pattern` and of x in rows where `pattern` has entries; rows cost
/// a wrong guess of a branch or two.
void GatherCells(const Matrix& pattern, const Matrix& x, int64_t begin, int64_t end, SpreadRow& spread,
                 double* out);

}  // namespace heddle::ops
