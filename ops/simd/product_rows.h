// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "ops/cpu.h"
#include "ops/simd/rows.h"

// What products of rows with few vectors (matmul.cc), and those with the sums that such a product weights
// (rows_and_columns.cc), share. AVX2 only.
namespace heddle::ops::simd {

/// One row times one vector (EachFour).
template <int kRest, bool kMasked>
[[gnu::always_inline]] inline double MultiplyRow(const double* row, const double* v, int64_t n,
                                                 int64_t distance) {
  __m256d lanes[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
  EachFour<kRest, kMasked>(
      row, n, distance, [&](int64_t j, int half, bool masked) __attribute__((always_inline)) {
        const __m256d cells = masked ? LoadFirst(row + j, n - j) : _mm256_loadu_pd(row + j);
        lanes[half] = _mm256_fmadd_pd(cells, _mm256_load_pd(v + j), lanes[half]);
      });
  const __m256d half = _mm256_add_pd(lanes[0], lanes[1]);
  const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
  return _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair))) + 0.0;
}

/// (r0+r4, r1+r5, r2+r6, r3+r7) of one row times each of kCount vectors. kTail: after the whole eights comes
/// 0: nothing, 1: at most four cells, 2: more; `last`: how many of the last four.
template <int kCount, int kTail>
[[gnu::always_inline]] inline void HalfLanes(const double* x, int64_t whole, const double* v,
                                             int64_t v_stride, int64_t last, Ahead& ahead, __m256d* half) {
  __m256d low[kCount], high[kCount];
#pragma GCC unroll 4
  for (int c = 0; c < kCount; ++c) low[c] = high[c] = _mm256_setzero_pd();
  const auto add = [&](int64_t j) __attribute__((always_inline)) {
    const __m256d x_low = _mm256_loadu_pd(x + j), x_high = _mm256_loadu_pd(x + j + 4);
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c) {
      low[c] = _mm256_fmadd_pd(x_low, _mm256_load_pd(v + c * v_stride + j), low[c]);
      high[c] = _mm256_fmadd_pd(x_high, _mm256_load_pd(v + c * v_stride + j + 4), high[c]);
    }
  };
  const bool every = ahead.shift() == 0;
  for (int64_t turns = whole / 16; turns > 0; --turns, x += 16, v += 16) {
    ahead.Fetch();
    add(0);
    if (every) ahead.Fetch();
    add(8);
  }
  if (whole % 16 > 0) {
    ahead.Fetch();
    add(0);
    x += 8;
    v += 8;
  }
  if constexpr (kTail > 0) {
    const __m256d x_low = kTail == 1 ? LoadFirst(x, last) : _mm256_loadu_pd(x);
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c)
      low[c] = _mm256_fmadd_pd(x_low, _mm256_load_pd(v + c * v_stride), low[c]);
  }
  if constexpr (kTail == 2) {
    const __m256d x_high = LoadFirst(x + 4, last);
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c)
      high[c] = _mm256_fmadd_pd(x_high, _mm256_load_pd(v + c * v_stride + 4), high[c]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < kCount; ++c) half[c] = _mm256_add_pd(low[c], high[c]);
}

/// columns += each row times its weight; the accumulators are in memory. Returns the rows done: kRows at a
/// time. Several pay also on rows that are in the cache already.
template <int kRows, int kFetch = 0>
inline int64_t AddRowsToColumns(const double* x, int64_t rows, int64_t stride, int64_t n, const double* w,
                                int64_t w_stride, double* columns, Ahead* ahead = nullptr) {
  Ahead next = ahead == nullptr ? Ahead() : *ahead;
  int64_t i = 0;
  for (; i + kRows <= rows; i += kRows, x += kRows * stride, w += kRows * w_stride) {
    __m256d weights[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) weights[r] = _mm256_broadcast_sd(w + r * w_stride);
    const auto join = [&](int r, __m256d sum, __m256d cells) __attribute__((always_inline)) {
      return _mm256_fmadd_pd(cells, weights[r], sum);
    };
    UpdateColumns<kRows, kFetch>(x, stride, n, columns, join, &next);
  }
  if (ahead != nullptr) ahead->GoOnFrom(next);
  return i;
}

}  // namespace heddle::ops::simd
