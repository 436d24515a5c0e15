// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "ops/simd/codes/column_products.h"

// Columns of a compressed matrix, with AVX-512: cells of some rows are looked up into columns of a buffer in
// the first-level cache, and the lanes of X %*% M (docs/numerics.md) run along the buffer.
namespace heddle::ops::simd {

/// out[i] = the cell of code i, for codes of 4 bits from number `first` on, which is even; `cells` has 16.
/// `out` is 64-byte aligned.
void LookUpFourBitsAvx512(const uint8_t* codes, int64_t first, int64_t count, const double* cells,
                          double* out);
/// `cells` has kRegisterCells where there are at most so many tuples.
void LookUpCodesAvx512(const uint8_t* codes, int64_t count, const double* cells, int64_t tuples, double* out);
void LookUpCodesAvx512(const uint16_t* codes, int64_t count, const double* cells, double* out);

/// Columns of X, those of a lane one behind the other.
struct LaneColumns {
  const double* cells;    ///< Cell i of column s: cells[s * stride + i]; 64-byte aligned.
  int64_t stride;         ///< A multiple of 64.
  const double* factors;  ///< Of column s: factors[s * k + c].
  int64_t ends[8];        ///< Behind the columns of each lane.
};
/// out[i * k + c] = L of eight lanes of fma(cell, factor, .), plus +0.0, for i < count <= stride, c < k <= 8.
void MultiplyLanesAvx512(const LaneColumns& columns, int64_t count, int64_t k, double* out);

}  // namespace heddle::ops::simd
