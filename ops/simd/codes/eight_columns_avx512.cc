// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/codes/eight_columns.h"

namespace heddle::ops::simd {
namespace {

// Four pairs of numbers: 128 bits of a and b by their numbers.
template <int kWhich>
__attribute__((always_inline)) inline __m512d Pick(__m512d a, __m512d b) {
  return _mm512_shuffle_f64x2(a, b, kWhich);
}

}  // namespace

void LookUpEightColumnsAvx512(const EightColumns& columns, int64_t first, int64_t count, double* to,
                              int64_t stride) {
  __m512d low[8], high[8];
#pragma GCC unroll 8
  for (int c = 0; c < 8; ++c) {
    low[c] = _mm512_loadu_pd(columns.cells[c]);
    high[c] = _mm512_loadu_pd(columns.cells[c] + 8);
  }
  // A lane finds its code in the lowest four bits; what is above them does not count.
  const __m512i places = _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28);
  for (int64_t i = 0; i < count; i += 8, to += 8 * stride) {
    __m512d x[8];
#pragma GCC unroll 8
    for (int c = 0; c < 8; ++c) {
      int32_t codes;
      __builtin_memcpy(&codes, columns.codes[c] + (first + i) / 2, sizeof(codes));
      x[c] = _mm512_permutex2var_pd(low[c], _mm512_srlv_epi64(_mm512_set1_epi32(codes), places), high[c]);
    }
    // Rows in the place of columns.
    const __m512d a0 = _mm512_unpacklo_pd(x[0], x[1]), a1 = _mm512_unpackhi_pd(x[0], x[1]),
                  a2 = _mm512_unpacklo_pd(x[2], x[3]), a3 = _mm512_unpackhi_pd(x[2], x[3]),
                  a4 = _mm512_unpacklo_pd(x[4], x[5]), a5 = _mm512_unpackhi_pd(x[4], x[5]),
                  a6 = _mm512_unpacklo_pd(x[6], x[7]), a7 = _mm512_unpackhi_pd(x[6], x[7]);
    // Rows 0 and 4, 1 and 5, ... of four columns; then 2 and 6, 3 and 7.
    const __m512d b0 = Pick<0x88>(a0, a2), b1 = Pick<0x88>(a1, a3), b2 = Pick<0xdd>(a0, a2),
                  b3 = Pick<0xdd>(a1, a3), b4 = Pick<0x88>(a4, a6), b5 = Pick<0x88>(a5, a7),
                  b6 = Pick<0xdd>(a4, a6), b7 = Pick<0xdd>(a5, a7);
    _mm512_storeu_pd(to, Pick<0x88>(b0, b4));
    _mm512_storeu_pd(to + stride, Pick<0x88>(b1, b5));
    _mm512_storeu_pd(to + 2 * stride, Pick<0x88>(b2, b6));
    _mm512_storeu_pd(to + 3 * stride, Pick<0x88>(b3, b7));
    _mm512_storeu_pd(to + 4 * stride, Pick<0xdd>(b0, b4));
    _mm512_storeu_pd(to + 5 * stride, Pick<0xdd>(b1, b5));
    _mm512_storeu_pd(to + 6 * stride, Pick<0xdd>(b2, b6));
    _mm512_storeu_pd(to + 7 * stride, Pick<0xdd>(b3, b7));
  }
}

}  // namespace heddle::ops::simd
