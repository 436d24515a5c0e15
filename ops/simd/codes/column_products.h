// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

// A column of a compressed matrix times a number, added to a chain for each row: sums[i] = fma(cell of row i,
// factor, sums[i]), i < count. AVX-512.
namespace heddle::ops::simd {

/// Codes of 4 bits from number `first` on, which is even; `cells` has 16.
void MultiplyFourBitsAvx512(const uint8_t* codes, int64_t first, int64_t count, const double* cells,
                            double factor, double* sums);
void MultiplyCodesAvx512(const uint8_t* codes, int64_t count, const double* cells, double factor,
                         double* sums);
void MultiplyCodesAvx512(const uint16_t* codes, int64_t count, const double* cells, double factor,
                         double* sums);
/// Cells themselves, `step` (0 or 1) apart.
void MultiplyCellsAvx512(const double* cells, int64_t step, int64_t count, double factor, double* sums);
/// out[i * out_step] = L of the eight lanes[lane * stride + i], plus +0.0.
void CloseLanesAvx512(const double* lanes, int64_t stride, int64_t count, double* out, int64_t out_step);

}  // namespace heddle::ops::simd
