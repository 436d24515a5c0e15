// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/product/matmul.h"
#include "ops/simd/vector.h"

namespace heddle::ops::simd {
// Lanes are eight rows of x, so that none is empty: of 64 cells of x 24 operations move them to their lanes,
// and 8 * count multiply, where lanes of a row of b would take 128 for nine columns or more. Loops over
// registers are unrolled, or they would live in memory.
namespace {

using avx512::FirstLanes, avx512::kAllLanes;

[[gnu::always_inline]] inline __m512d UnpackLow(__m512d a, __m512d b) {
  return _mm512_maskz_unpacklo_pd(kAllLanes, a, b);
}
[[gnu::always_inline]] inline __m512d UnpackHigh(__m512d a, __m512d b) {
  return _mm512_maskz_unpackhi_pd(kAllLanes, a, b);
}
// Of a the first and third pair of lanes, then of b; likewise the second and fourth.
[[gnu::always_inline]] inline __m512d EvenQuarters(__m512d a, __m512d b) {
  return _mm512_maskz_shuffle_f64x2(kAllLanes, a, b, 0x88);
}
[[gnu::always_inline]] inline __m512d OddQuarters(__m512d a, __m512d b) {
  return _mm512_maskz_shuffle_f64x2(kAllLanes, a, b, 0xdd);
}

// columns[q] = x[r, q] of rows r = 0 to 7; of the first columns only where there is no room for four.
template <bool kWhole>
[[gnu::always_inline]] inline void LoadFourColumns(const double* x, int64_t stride, __mmask8 there,
                                                   __m512d columns[4]) {
  const auto rows = [&](int64_t low, int64_t high) __attribute__((always_inline)) {
    const auto load = [&](const double* row) __attribute__((always_inline)) {
      return kWhole ? _mm256_loadu_pd(row) : _mm256_maskz_loadu_pd(there, row);
    };
    return _mm512_insertf64x4(_mm512_castpd256_pd512(load(x + low * stride)), load(x + high * stride), 1);
  };
  const __m512d a = rows(0, 2), b = rows(1, 3), c = rows(4, 6), d = rows(5, 7);
  const __m512d even = UnpackLow(a, b), odd = UnpackHigh(a, b), next_even = UnpackLow(c, d),
                next_odd = UnpackHigh(c, d);
  columns[0] = EvenQuarters(even, next_even);
  columns[1] = EvenQuarters(odd, next_odd);
  columns[2] = OddQuarters(even, next_even);
  columns[3] = OddQuarters(odd, next_odd);
}

// out[r * out_stride + c] = columns[c][r] + 0.0 for c < kCount <= 8 and eight rows.
template <int kCount>
[[gnu::always_inline]] inline void StoreRows(const __m512d* columns, double* out, int64_t out_stride) {
  __m512d c[8], pairs[8], rows[4];
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) c[k] = _mm512_setzero_pd();
#pragma GCC unroll 8
  for (int k = 0; k < kCount; ++k) c[k] = _mm512_add_pd(columns[k], _mm512_setzero_pd());
#pragma GCC unroll 4
  for (int k = 0; k < 8; k += 2) {
    pairs[k] = UnpackLow(c[k], c[k + 1]);
    pairs[k + 1] = UnpackHigh(c[k], c[k + 1]);
  }
#pragma GCC unroll 2
  for (int odd = 0; odd < 2; ++odd) {  // Of even rows, then of odd ones.
    rows[0] = EvenQuarters(pairs[odd], pairs[2 + odd]);
    rows[1] = EvenQuarters(pairs[4 + odd], pairs[6 + odd]);
    rows[2] = OddQuarters(pairs[odd], pairs[2 + odd]);
    rows[3] = OddQuarters(pairs[4 + odd], pairs[6 + odd]);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      double* to = out + (2 * half + odd) * out_stride;
      _mm512_mask_storeu_pd(to, FirstLanes(kCount), EvenQuarters(rows[2 * half], rows[2 * half + 1]));
      _mm512_mask_storeu_pd(to + 4 * out_stride, FirstLanes(kCount),
                            OddQuarters(rows[2 * half], rows[2 * half + 1]));
    }
  }
}

template <int kCount>
void EightRows(const double* x, int64_t stride, int64_t n, const double* b, double* out, int64_t out_stride,
               const Prefetch& prefetch) {
  __m512d sums[kCount];
#pragma GCC unroll 13
  for (int c = 0; c < kCount; ++c) sums[c] = _mm512_setzero_pd();
  const auto add = [&](__m512d cells) __attribute__((always_inline)) {
#pragma GCC unroll 13
    for (int c = 0; c < kCount; ++c) sums[c] = _mm512_fmadd_pd(cells, _mm512_set1_pd(b[c]), sums[c]);
    b += kCount;
  };
  int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    prefetch.Fetch(x + j, stride, 8);
    __m512d columns[8];
    LoadFourColumns<true>(x + j, stride, 0xf, columns);
    LoadFourColumns<true>(x + j + 4, stride, 0xf, columns + 4);
#pragma GCC unroll 8
    for (int q = 0; q < 8; ++q) add(columns[q]);
  }
  for (; j < n; j += 4) {
    const int64_t left = n - j;
    __m512d columns[4];
    LoadFourColumns<false>(x + j, stride, FirstLanes(left < 4 ? left : 4), columns);
    add(columns[0]);
    if (left > 1) add(columns[1]);
    if (left > 2) add(columns[2]);
    if (left > 3) add(columns[3]);
  }
  StoreRows<8>(sums, out, out_stride);
  StoreRows<kCount - 8>(sums + 8, out + 8, out_stride);
}

template <int kCount = kLeastSkinny>
auto EightRowsOf(int64_t count) {
  if constexpr (kCount < kMostSkinny) {
    if (count > kCount) return EightRowsOf<kCount + 1>(count);
  }
  return EightRows<kCount>;
}

}  // namespace

void MultiplySkinny(const double* x, int64_t rows, int64_t stride, int64_t n, const double* b, int64_t count,
                    double* out, int64_t out_stride, const Prefetch& prefetch) {
  const auto run = EightRowsOf(count);
  // Eight rows at the end may be done in part already: they become the same again.
  for (int64_t i = 0; i < rows; i += 8) {
    const int64_t first = i + 8 <= rows ? i : rows - 8;
    run(x + first * stride, stride, n, b, out + first * out_stride, out_stride, prefetch);
  }
}

}  // namespace heddle::ops::simd
