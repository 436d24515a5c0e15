// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/codes/number_cells.h"

namespace heddle::ops::simd {

int64_t NumberCellsAvx512(const WholeNumbers& table, const double* cells, int64_t stride, int64_t count,
                          uint16_t* codes) {
  const __m256i first = _mm256_set1_epi32(table.first),
                places = _mm256_set1_epi32(static_cast<int32_t>(table.places));
  const __m256i number = _mm256_set1_epi32(0xffff);
  const __m512i rows =
      _mm512_mullo_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi64(stride));
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m512d eight = _mm512_mask_i64gather_pd(_mm512_setzero_pd(), 0xff, rows, cells + i * stride, 8);
    const __m256i whole = _mm512_maskz_cvttpd_epi32(0xff, eight);
    // -0.0 is no whole number: its bits are others than those of 0.
    const __mmask8 is_whole = _mm512_cmpeq_epi64_mask(
        _mm512_castpd_si512(eight), _mm512_castpd_si512(_mm512_maskz_cvtepi32_pd(0xff, whole)));
    const __m256i place = _mm256_sub_epi32(whole, first);
    if (_mm256_mask_cmplt_epu32_mask(is_whole, place, places) != 0xff) break;
    const __m256i found = _mm256_and_si256(
        _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), reinterpret_cast<const int*>(table.numbers),
                                    place, _mm256_set1_epi32(-1), 2),
        number);
    if (_mm256_cmpeq_epi32_mask(found, number) != 0) break;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + i), _mm256_maskz_cvtepi32_epi16(0xff, found));
  }
  return i;
}

}  // namespace heddle::ops::simd
