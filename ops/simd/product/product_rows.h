// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "ops/simd/rows.h"

// What products of rows with few vectors (matmul.cc), and those with the sums that such a product weights
// (rows_and_columns.cc), share. AVX2 only.
namespace heddle::ops::simd {

/// One row times one vector (EachFour).
template <int kRest, bool kMasked, typename Cell>
[[gnu::always_inline]] inline double MultiplyRow(const Cell* row, const double* v, int64_t n,
                                                 const Prefetch& prefetch) {
  __m256d lanes[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
  EachFour<kRest, kMasked>(
      row, n, prefetch, [&](int64_t j, int half, bool masked) __attribute__((always_inline)) {
        const __m256d cells = masked ? LoadFirstOfFour(row + j, n - j) : LoadFour(row + j);
        lanes[half] = _mm256_fmadd_pd(cells, _mm256_load_pd(v + j), lanes[half]);
      });
  const __m256d half = _mm256_add_pd(lanes[0], lanes[1]);
  const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
  return _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair))) + 0.0;
}

/// columns += each row times its weight; the accumulators are in memory. Returns the rows done: kRows at a
/// time. Several pay also on rows that are in the cache already.
template <int kRows, bool kFetch, typename Cell>
inline int64_t AddRowsToColumns(const Cell* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                                int64_t w_stride, double* columns, const Prefetch& prefetch) {
  int64_t i = 0;
  for (; i + kRows <= rows; i += kRows, x += kRows * stride, w += kRows * w_stride) {
    __m256d weights[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) weights[r] = _mm256_broadcast_sd(w + r * w_stride);
    UpdateColumns<kRows, kFetch>(
        x, stride, n, columns,
        prefetch, [&](int r, __m256d sum, __m256d cells) __attribute__((always_inline)) {
          return _mm256_fmadd_pd(cells, weights[r], sum);
        });
  }
  return i;
}

}  // namespace heddle::ops::simd
