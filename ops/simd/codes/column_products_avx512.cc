// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/codes/column_products.h"

namespace heddle::ops::simd {
namespace {

// Calls eight(i) for the cells of eight rows, one(i) for that of one.
template <int kColumns, typename Eight, typename One>
__attribute__((always_inline)) inline void AddRows(int64_t count, const ColumnChains& chains,
                                                   const Eight& eight, const One& one) {
  __m512d factors[kColumns];
  for (int c = 0; c < kColumns; ++c) factors[c] = _mm512_set1_pd(chains.factors[c]);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m512d cells = eight(i);
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
      double* const to = chains.sums + c * chains.stride + i;
      _mm512_storeu_pd(to, _mm512_fmadd_pd(cells, factors[c], _mm512_loadu_pd(to)));
    }
  }
  for (; i < count; ++i) {
    const double cell = one(i);
    for (int c = 0; c < kColumns; ++c) {
      double* const to = chains.sums + c * chains.stride + i;
      *to = __builtin_fma(cell, chains.factors[c], *to);
    }
  }
}

template <typename Eight, typename One>
__attribute__((always_inline)) inline void Add(int64_t count, const ColumnChains& chains, const Eight& eight,
                                               const One& one) {
  if (chains.k == 1) return AddRows<1>(count, chains, eight, one);
  AddRows<2>(count, chains, eight, one);
}

__attribute__((always_inline)) inline __m512i Load(const uint8_t* codes) {
  return _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes)));
}
__attribute__((always_inline)) inline __m512i Load(const uint16_t* codes) {
  return _mm512_cvtepu16_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
}

template <typename Code>
__attribute__((always_inline)) inline void Gather(const Code* codes, int64_t count, const double* cells,
                                                  const ColumnChains& chains) {
  Add(
      count, chains,
      [&](int64_t i) __attribute__((always_inline)) {
        return _mm512_mask_i64gather_pd(_mm512_setzero_pd(), 0xff, Load(codes + i), cells, sizeof(double));
      },
      [&](int64_t i) { return cells[codes[i]]; });
}

}  // namespace

void MultiplyFourBitsAvx512(const uint8_t* codes, int64_t first, int64_t count, const double* cells,
                            const ColumnChains& chains) {
  const __m512d low = _mm512_loadu_pd(cells), high = _mm512_loadu_pd(cells + 8);
  // A lane finds its code in the lowest four bits; what is above them does not count.
  const __m512i places = _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28);
  Add(
      count, chains,
      [&](int64_t i) __attribute__((always_inline)) {
        int32_t eight;
        __builtin_memcpy(&eight, codes + (first + i) / 2, sizeof(eight));
        return _mm512_permutex2var_pd(low, _mm512_srlv_epi64(_mm512_set1_epi32(eight), places), high);
      },
      [&](int64_t i) { return cells[codes[(first + i) / 2] >> ((first + i) % 2 * 4) & 15]; });
}

void MultiplyCodesAvx512(const uint8_t* codes, int64_t count, const double* cells, int64_t tuples,
                         const ColumnChains& chains) {
  if (tuples > kRegisterCells) return Gather(codes, count, cells, chains);
  const __m512d first = _mm512_loadu_pd(cells), second = _mm512_loadu_pd(cells + 8),
                third = _mm512_loadu_pd(cells + 16), fourth = _mm512_loadu_pd(cells + 24);
  const __m512i upper = _mm512_set1_epi64(16);
  Add(
      count, chains,
      [&](int64_t i) __attribute__((always_inline)) {
        const __m512i eight = Load(codes + i);
        return _mm512_mask_blend_pd(_mm512_test_epi64_mask(eight, upper),
                                    _mm512_permutex2var_pd(first, eight, second),
                                    _mm512_permutex2var_pd(third, eight, fourth));
      },
      [&](int64_t i) { return cells[codes[i]]; });
}

void MultiplyCodesAvx512(const uint16_t* codes, int64_t count, const double* cells,
                         const ColumnChains& chains) {
  Gather(codes, count, cells, chains);
}

void MultiplyCellsAvx512(const double* cells, int64_t step, int64_t count, const ColumnChains& chains) {
  const __m512d first = _mm512_set1_pd(cells[0]);
  Add(
      count, chains,
      [&](int64_t i)
          __attribute__((always_inline)) { return step == 0 ? first : _mm512_loadu_pd(cells + i); },
      [&](int64_t i) { return cells[i * step]; });
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
