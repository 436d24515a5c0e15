// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

namespace heddle::ops::simd {

/// Eight columns, side by side in a row-major matrix, whose cells are named by codes of 4 bits.
struct EightColumns {
  const uint8_t* codes[8];  ///< From the first row on, which has an even number.
  const double* cells[8];   ///< 16 for each column: those of its codes, and any others behind them.
};
/// to[i * stride + c] = the cell of column c in row first + i, for i < count; both are multiples of eight.
void LookUpEightColumnsAvx512(const EightColumns& columns, int64_t first, int64_t count, double* to,
                              int64_t stride);

}  // namespace heddle::ops::simd
