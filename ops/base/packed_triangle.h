// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace heddle::ops {

/// A symmetric n x n matrix as its cells on and above the diagonal, row by row, without gaps: how many of
/// them stand in front of row `row`, which has n - row. Cell (i, j), j >= i, is number CellsBeforeRow(n, i) +
/// j - i.
constexpr int64_t CellsBeforeRow(int64_t n, int64_t row) { return row * n - row * (row - 1) / 2; }

}  // namespace heddle::ops
