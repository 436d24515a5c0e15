// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <cstdint>

// Cells of dense blocks moved to their places in the transposed block, in registers. Strides are in cells.
// AVX2 only.
namespace heddle::ops::simd {

/// Four rows and four columns of `from` become four rows of `to`.
inline void TransposeFour(const double* from, int64_t from_stride, double* to, int64_t to_stride) {
  const __m256d a = _mm256_loadu_pd(from), b = _mm256_loadu_pd(from + from_stride),
                c = _mm256_loadu_pd(from + 2 * from_stride), d = _mm256_loadu_pd(from + 3 * from_stride);
  const __m256d ab_even = _mm256_unpacklo_pd(a, b), ab_odd = _mm256_unpackhi_pd(a, b),
                cd_even = _mm256_unpacklo_pd(c, d), cd_odd = _mm256_unpackhi_pd(c, d);
  _mm256_storeu_pd(to, _mm256_permute2f128_pd(ab_even, cd_even, 0x20));
  _mm256_storeu_pd(to + to_stride, _mm256_permute2f128_pd(ab_odd, cd_odd, 0x20));
  _mm256_storeu_pd(to + 2 * to_stride, _mm256_permute2f128_pd(ab_even, cd_even, 0x31));
  _mm256_storeu_pd(to + 3 * to_stride, _mm256_permute2f128_pd(ab_odd, cd_odd, 0x31));
}

inline void TransposeFour(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + from_stride),
         c = _mm_loadu_ps(from + 2 * from_stride), d = _mm_loadu_ps(from + 3 * from_stride);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(to, a);
  _mm_storeu_ps(to + to_stride, b);
  _mm_storeu_ps(to + 2 * to_stride, c);
  _mm_storeu_ps(to + 3 * to_stride, d);
}

/// to[j * to_stride + i] = from[i * from_stride + j]. Eight columns at a time: a cache line of each row.
template <typename Cell>
inline void Transpose(const Cell* from, int64_t from_stride, int64_t rows, int64_t columns, Cell* to,
                      int64_t to_stride) {
  int64_t j = 0;
  for (; j + 4 <= columns; j += j + 8 <= columns ? 8 : 4) {
    const bool wide = j + 8 <= columns;
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4) {
      TransposeFour(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
      if (wide)
        TransposeFour(from + i * from_stride + j + 4, from_stride, to + (j + 4) * to_stride + i, to_stride);
    }
    for (; i < rows; ++i)
      for (int64_t k = j; k < j + (wide ? 8 : 4); ++k) to[k * to_stride + i] = from[i * from_stride + k];
  }
  for (; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) to[j * to_stride + i] = from[i * from_stride + j];
}

}  // namespace heddle::ops::simd
