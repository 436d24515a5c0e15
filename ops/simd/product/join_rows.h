// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>
#include <stdint.h>

// What products of rows with few vectors share on AVX2 and AVX-512: how the lanes of four rows become cells.
// Inlined by force, so that the two compilations never meet in the linker.
namespace heddle::ops::simd {

/// The rest of L (docs/numerics.md, section 3) for four rows at once, and + 0.0; of each (r0+r4, r1+r5,
/// r2+r6, r3+r7). By halves: what moves cells between halves of a vector is slow on some processors.
[[gnu::always_inline]] inline __m256d JoinFourRows(__m256d a, __m256d b, __m256d c, __m256d d) {
  const auto fold = [](__m256d row) __attribute__((always_inline)) {
    return _mm_add_pd(_mm256_castpd256_pd128(row), _mm256_extractf128_pd(row, 1));
  };
  const auto join = [&](__m256d first, __m256d second) __attribute__((always_inline)) {
    const __m128d f = fold(first), s = fold(second);
    return _mm_add_pd(_mm_unpacklo_pd(f, s), _mm_unpackhi_pd(f, s));
  };
  return _mm256_add_pd(_mm256_set_m128d(join(c, d), join(a, b)), _mm256_setzero_pd());
}

/// out[r * out_stride + c] = the joined half[r][c], of four rows.
template <int kCount>
[[gnu::always_inline]] inline void StoreFourRows(const __m256d (*half)[kCount], double* out,
                                                 int64_t out_stride) {
  __m256d columns[kCount];
#pragma GCC unroll 4
  for (int c = 0; c < kCount; ++c) columns[c] = JoinFourRows(half[0][c], half[1][c], half[2][c], half[3][c]);
  // Of rows 0, 1, 2 and 3: two columns in half a vector.
  const auto store_two = [&](double* to, __m256d first, __m256d second) __attribute__((always_inline)) {
    const __m256d even = _mm256_unpacklo_pd(first, second), odd = _mm256_unpackhi_pd(first, second);
    _mm_storeu_pd(to, _mm256_castpd256_pd128(even));
    _mm_storeu_pd(to + out_stride, _mm256_castpd256_pd128(odd));
    _mm_storeu_pd(to + 2 * out_stride, _mm256_extractf128_pd(even, 1));
    _mm_storeu_pd(to + 3 * out_stride, _mm256_extractf128_pd(odd, 1));
  };
  const auto store_one = [&](double* to, __m256d column) __attribute__((always_inline)) {
    const __m128d low = _mm256_castpd256_pd128(column), high = _mm256_extractf128_pd(column, 1);
    _mm_storel_pd(to, low);
    _mm_storeh_pd(to + out_stride, low);
    _mm_storel_pd(to + 2 * out_stride, high);
    _mm_storeh_pd(to + 3 * out_stride, high);
  };
  if constexpr (kCount == 4) {
    const __m256d low = _mm256_unpacklo_pd(columns[0], columns[1]),
                  high = _mm256_unpackhi_pd(columns[0], columns[1]),
                  next_low = _mm256_unpacklo_pd(columns[2], columns[3]),
                  next_high = _mm256_unpackhi_pd(columns[2], columns[3]);
    _mm256_storeu_pd(out, _mm256_permute2f128_pd(low, next_low, 0x20));
    _mm256_storeu_pd(out + out_stride, _mm256_permute2f128_pd(high, next_high, 0x20));
    _mm256_storeu_pd(out + 2 * out_stride, _mm256_permute2f128_pd(low, next_low, 0x31));
    _mm256_storeu_pd(out + 3 * out_stride, _mm256_permute2f128_pd(high, next_high, 0x31));
  } else if (kCount == 1 && out_stride == 1) {
    _mm256_storeu_pd(out, columns[0]);
  } else {
    if constexpr (kCount >= 2) store_two(out, columns[0], columns[1]);
    if constexpr (kCount != 2) store_one(out + kCount - 1, columns[kCount - 1]);
  }
}

}  // namespace heddle::ops::simd
