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

/// Eight rows and eight columns of floats: half a cache line of each row.
inline void TransposeEight(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  const auto halves = [&](int row, int column) {
    const float* const upper = from + row * from_stride + column;
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(upper)),
                                _mm_loadu_ps(upper + 4 * from_stride), 1);
  };
  for (int column = 0; column < 8; column += 4) {
    const __m256 a = halves(0, column), b = halves(1, column), c = halves(2, column), d = halves(3, column);
    const __m256 ab_low = _mm256_unpacklo_ps(a, b), ab_high = _mm256_unpackhi_ps(a, b),
                 cd_low = _mm256_unpacklo_ps(c, d), cd_high = _mm256_unpackhi_ps(c, d);
    float* const out = to + column * to_stride;
    _mm256_storeu_ps(out, _mm256_shuffle_ps(ab_low, cd_low, 0x44));
    _mm256_storeu_ps(out + to_stride, _mm256_shuffle_ps(ab_low, cd_low, 0xee));
    _mm256_storeu_ps(out + 2 * to_stride, _mm256_shuffle_ps(ab_high, cd_high, 0x44));
    _mm256_storeu_ps(out + 3 * to_stride, _mm256_shuffle_ps(ab_high, cd_high, 0xee));
  }
}

/// Blocks of half a cache line, square.
inline void TransposeBlock(const double* from, int64_t from_stride, double* to, int64_t to_stride) {
  TransposeFour(from, from_stride, to, to_stride);
}
inline void TransposeBlock(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  TransposeEight(from, from_stride, to, to_stride);
}

/// to[j * to_stride + i] = from[i * from_stride + j]. A cache line of each row at a time.
template <typename Cell>
inline void Transpose(const Cell* from, int64_t from_stride, int64_t rows, int64_t columns, Cell* to,
                      int64_t to_stride) {
  constexpr int64_t kBlock = 32 / static_cast<int64_t>(sizeof(Cell));
  int64_t j = 0;
  for (; j + 4 <= columns;) {
    // Columns of a cache line, of a block, or four.
    const int64_t width = j + 2 * kBlock <= columns ? 2 * kBlock : j + kBlock <= columns ? kBlock : 4;
    int64_t i = 0;
    if (width >= kBlock)
      for (; i + kBlock <= rows; i += kBlock)
        for (int64_t k = j; k < j + width; k += kBlock)
          TransposeBlock(from + i * from_stride + k, from_stride, to + k * to_stride + i, to_stride);
    for (; i + 4 <= rows; i += 4)
      for (int64_t k = j; k < j + width; k += 4)
        TransposeFour(from + i * from_stride + k, from_stride, to + k * to_stride + i, to_stride);
    for (; i < rows; ++i)
      for (int64_t k = j; k < j + width; ++k) to[k * to_stride + i] = from[i * from_stride + k];
    j += width;
  }
  for (; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) to[j * to_stride + i] = from[i * from_stride + j];
}

}  // namespace heddle::ops::simd
