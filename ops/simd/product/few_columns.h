// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/prefetch.h"

namespace heddle::ops::simd {

/// MultiplyRows of one to four vectors and MultiplyColumns of a few columns (simd/matmul.h), where arithmetic
/// counts beside memory: written once, compiled for AVX2 and AVX-512 (few_columns.inc).
/// Cells of x are doubles, or floats that are widened as they are read.
template <typename Cell>
struct FewColumns {
  /// All rows but the last ones of an incomplete group of four; returns the rows done.
  int64_t (*multiply_rows)(const Cell* x, int64_t rows, int64_t stride, int64_t n, const double* vectors,
                           int64_t vector_stride, int64_t count, double* out, int64_t out_stride,
                           const Prefetch& prefetch);
  int64_t most_columns;  ///< Of one call of multiply_columns.
  void (*multiply_columns)(const Cell* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                           int64_t w_stride, int64_t count, double* columns, int64_t columns_stride,
                           const Prefetch& prefetch);
};
extern const FewColumns<double> kFewColumnsAvx2, kFewColumnsAvx512;
extern const FewColumns<float> kFewSingleColumnsAvx2, kFewSingleColumnsAvx512;

/// MultiplySparseRow (simd/sparse_rows.h) for AVX-512: most rows of B are read in one pass; the same bytes.
void MultiplySparseRowAvx512(const double* values, const int32_t* columns, int64_t entries, const double* b,
                             int64_t b_stride, int64_t n, double* out);

}  // namespace heddle::ops::simd
