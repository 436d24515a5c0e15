// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/codes/column_products.h"

namespace heddle::ops::simd {
namespace {

__attribute__((always_inline)) inline void Add(__m512d cells, __m512d factor, double* sums) {
  _mm512_storeu_pd(sums, _mm512_fmadd_pd(cells, factor, _mm512_loadu_pd(sums)));
}

template <typename Code, typename Load>
__attribute__((always_inline)) inline void MultiplyCodes(const Code* codes, int64_t count,
                                                         const double* cells, double factor, double* sums,
                                                         const Load& load) {
  const __m512d factors = _mm512_set1_pd(factor);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    Add(_mm512_mask_i64gather_pd(_mm512_setzero_pd(), 0xff, load(codes + i), cells, sizeof(double)), factors,
        sums + i);
  for (; i < count; ++i) sums[i] = __builtin_fma(cells[codes[i]], factor, sums[i]);
}

}  // namespace

void MultiplyFourBitsAvx512(const uint8_t* codes, int64_t first, int64_t count, const double* cells,
                            double factor, double* sums) {
  const __m512d low = _mm512_loadu_pd(cells), high = _mm512_loadu_pd(cells + 8),
                factors = _mm512_set1_pd(factor);
  // A lane finds its code in the lowest four bits; what is above them does not count.
  const __m512i places = _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    int32_t eight;
    __builtin_memcpy(&eight, codes + (first + i) / 2, sizeof(eight));
    Add(_mm512_permutex2var_pd(low, _mm512_srlv_epi64(_mm512_set1_epi32(eight), places), high), factors,
        sums + i);
  }
  for (; i < count; ++i) {
    const int64_t code = first + i;
    sums[i] = __builtin_fma(cells[codes[code / 2] >> (code % 2 * 4) & 15], factor, sums[i]);
  }
}

void MultiplyCodesAvx512(const uint8_t* codes, int64_t count, const double* cells, double factor,
                         double* sums) {
  MultiplyCodes(codes, count, cells, factor, sums, [](const uint8_t* eight) {
    return _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(eight)));
  });
}

void MultiplyCodesAvx512(const uint16_t* codes, int64_t count, const double* cells, double factor,
                         double* sums) {
  MultiplyCodes(codes, count, cells, factor, sums, [](const uint16_t* eight) {
    return _mm512_cvtepu16_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(eight)));
  });
}

void MultiplyCellsAvx512(const double* cells, int64_t step, int64_t count, double factor, double* sums) {
  const __m512d factors = _mm512_set1_pd(factor), first = _mm512_set1_pd(cells[0]);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) Add(step == 0 ? first : _mm512_loadu_pd(cells + i), factors, sums + i);
  for (; i < count; ++i) sums[i] = __builtin_fma(cells[i * step], factor, sums[i]);
}

void CloseLanesAvx512(const double* lanes, int64_t stride, int64_t count, double* out, int64_t out_step) {
  alignas(64) double closed[8];
  for (int64_t i = 0; i < count; i += 8, lanes += 8) {
    const auto pair = [&](int64_t lane) __attribute__((always_inline)) {
      return _mm512_add_pd(_mm512_loadu_pd(lanes + lane * stride),
                           _mm512_loadu_pd(lanes + (lane + 4) * stride));
    };
    const __m512d sum = _mm512_add_pd(_mm512_add_pd(pair(0), pair(2)), _mm512_add_pd(pair(1), pair(3)));
    _mm512_store_pd(closed, _mm512_add_pd(sum, _mm512_setzero_pd()));
    for (int64_t k = 0; k < 8 && i + k < count; ++k) out[(i + k) * out_step] = closed[k];
  }
}

}  // namespace heddle::ops::simd
