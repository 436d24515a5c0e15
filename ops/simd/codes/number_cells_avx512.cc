// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/codes/number_cells.h"

namespace heddle::ops::simd {
namespace {

// Eight cells as whole numbers, and which of them are such: of -0.0 the bits are others than those of 0.
struct Eight {
  __m256i whole;
  unsigned is_whole;
};
Eight WholeOf(const double* cells) {
  const __m512d eight = _mm512_loadu_pd(cells);
  const __m256i whole = _mm512_maskz_cvttpd_epi32(0xff, eight);
  return {whole, _mm512_cmpeq_epi64_mask(_mm512_castpd_si512(eight),
                                         _mm512_castpd_si512(_mm512_maskz_cvtepi32_pd(0xff, whole)))};
}

}  // namespace

int64_t NumberCellsAvx512(const WholeNumbers& table, const double* cells, int64_t stride, int64_t count,
                          uint16_t* codes) {
  const __m256i first = _mm256_set1_epi32(table.first),
                places = _mm256_set1_epi32(static_cast<int32_t>(table.places));
  const __m256i number = _mm256_set1_epi32(0xffff);
  const __m512i rows =
      _mm512_mullo_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi64(stride));
  int64_t i = 0;
  // Numbers of 0 to 31 fit a register.
  if (stride == 1 && table.first <= 0 && static_cast<int64_t>(table.places) + table.first >= 32) {
    const __m512i small = _mm512_loadu_si512(table.numbers - table.first);
    for (; i + 32 <= count; i += 32) {
      const Eight a = WholeOf(cells + i), b = WholeOf(cells + i + 8), c = WholeOf(cells + i + 16),
                  d = WholeOf(cells + i + 24);
      if ((a.is_whole & b.is_whole & c.is_whole & d.is_whole) != 0xff) break;
      const __m512i low = _mm512_inserti64x4(_mm512_zextsi256_si512(a.whole), b.whole, 1);
      const __m512i high = _mm512_inserti64x4(_mm512_zextsi256_si512(c.whole), d.whole, 1);
      if (_mm512_cmplt_epu32_mask(_mm512_or_si512(low, high), _mm512_set1_epi32(32)) != 0xffff) break;
      const __m512i places_of =
          _mm512_inserti64x4(_mm512_zextsi256_si512(_mm512_maskz_cvtepi32_epi16(0xffff, low)),
                             _mm512_maskz_cvtepi32_epi16(0xffff, high), 1);
      const __m512i found = _mm512_maskz_permutexvar_epi16(~__mmask32{0}, places_of, small);
      if (_mm512_cmpeq_epi16_mask(found, _mm512_set1_epi16(-1)) != 0) break;
      _mm512_storeu_si512(codes + i, found);
    }
  }
  for (; i + 8 <= count; i += 8) {
    const __m512d eight =
        stride == 1 ? _mm512_loadu_pd(cells + i)
                    : _mm512_mask_i64gather_pd(_mm512_setzero_pd(), 0xff, rows, cells + i * stride, 8);
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
