// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/ahead.h"

namespace heddle::ops::simd {

/// MultiplyRows of two to four vectors and MultiplyColumns of two to twelve columns (simd/matmul.h) for
/// AVX-512, where arithmetic and not memory decides; the same bytes.
constexpr int kLeastFewColumns = 2, kMostColumnsTogether = 12;

/// All rows but the last ones of an incomplete group of four; returns the rows done.
int64_t MultiplyRowsAvx512(const double* x, int64_t rows, int64_t stride, int64_t n, const double* vectors,
                           int64_t vector_stride, int64_t count, double* out, int64_t out_stride,
                           Ahead& ahead);
void MultiplyColumnsAvx512(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                           int64_t w_stride, int64_t count, double* columns, int64_t columns_stride,
                           Ahead& ahead);

/// MultiplyRowsAndColumns (simd/matmul.h) for AVX-512, two vectors a row where AVX2 has three or four: all
/// rows but the last ones of an incomplete group of four; returns the rows done.
struct RowsAndColumnsCall;
int64_t MultiplyRowsAndColumnsAvx512(const RowsAndColumnsCall& call, const Ahead& ahead);

/// MultiplySkinny (simd/matmul.h) for AVX-512: at least eight rows.
constexpr int kLeastSkinny = 9, kMostSkinny = 13;
void MultiplySkinnyAvx512(const double* x, int64_t rows, int64_t stride, int64_t n, const double* b,
                          int64_t count, double* out, int64_t out_stride, Ahead& ahead);

}  // namespace heddle::ops::simd
