// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

// A column of a compressed matrix times k numbers (1 or 2), added to k chains for each row:
// sums[c * stride + i] = fma(cell of row i, factors[c], the same), i < count. AVX-512.
namespace heddle::ops::simd {

/// The chains of a column.
struct ColumnChains {
  const double* factors;
  int64_t k;
  double* sums;
  int64_t stride;
};

/// So many cells are looked up in registers.
constexpr int64_t kRegisterCells = 32;

/// Codes of 4 bits from number `first` on, which is even; `cells` has 16.
void MultiplyFourBitsAvx512(const uint8_t* codes, int64_t first, int64_t count, const double* cells,
                            const ColumnChains& chains);
/// `cells` has kRegisterCells where there are at most so many tuples.
void MultiplyCodesAvx512(const uint8_t* codes, int64_t count, const double* cells, int64_t tuples,
                         const ColumnChains& chains);
void MultiplyCodesAvx512(const uint16_t* codes, int64_t count, const double* cells,
                         const ColumnChains& chains);
/// Cells themselves, `step` (0 or 1) apart.
void MultiplyCellsAvx512(const double* cells, int64_t step, int64_t count, const ColumnChains& chains);
/// out[i * out_step] = L of the eight lanes[lane * stride + i], plus +0.0.
void CloseLanesAvx512(const double* lanes, int64_t stride, int64_t count, double* out, int64_t out_step);

}  // namespace heddle::ops::simd
