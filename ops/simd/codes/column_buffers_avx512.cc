// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/codes/column_buffers.h"

namespace heddle::ops::simd {
namespace {

__attribute__((always_inline)) inline __m512i Load(const uint8_t* codes) {
  return _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes)));
}
__attribute__((always_inline)) inline __m512i Load(const uint16_t* codes) {
  return _mm512_cvtepu16_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
}

// Eight at a time; the last ones one by one, as there may be no codes behind them.
template <typename Code, typename Eight>
__attribute__((always_inline)) inline void LookUp(const Code* codes, int64_t count, const double* cells,
                                                  double* out, const Eight& eight) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) _mm512_store_pd(out + i, eight(Load(codes + i)));
  for (; i < count; ++i) out[i] = cells[codes[i]];
}

template <typename Code>
__attribute__((always_inline)) inline void Gather(const Code* codes, int64_t count, const double* cells,
                                                  double* out) {
  LookUp(
      codes, count, cells, out, [&](__m512i eight) __attribute__((always_inline)) {
        return _mm512_mask_i64gather_pd(_mm512_setzero_pd(), 0xff, eight, cells, sizeof(double));
      });
}

// kVectors of rows at a time: sums of so many chains hide what an addition takes.
template <int kColumns, int kVectors>
void MultiplyLanes(const LaneColumns& columns, int64_t count, double* out) {
  constexpr int64_t kRows = 8 * kVectors;
  for (int64_t row = 0; row < count; row += kRows) {
    __m512d lanes[8][kVectors][kColumns];
    const double* cells = columns.cells + row;
    const double* factors = columns.factors;
    int64_t s = 0;
    for (int lane = 0; lane < 8; ++lane) {
      __m512d sums[kVectors][kColumns];
      for (int v = 0; v < kVectors; ++v)
        for (int c = 0; c < kColumns; ++c) sums[v][c] = _mm512_setzero_pd();
      for (; s < columns.ends[lane]; ++s, cells += columns.stride, factors += kColumns) {
        __m512d x[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) x[v] = _mm512_load_pd(cells + 8 * v);
#pragma GCC unroll 8
        for (int c = 0; c < kColumns; ++c) {
          const __m512d factor = _mm512_set1_pd(factors[c]);
#pragma GCC unroll 8
          for (int v = 0; v < kVectors; ++v) sums[v][c] = _mm512_fmadd_pd(x[v], factor, sums[v][c]);
        }
      }
      for (int v = 0; v < kVectors; ++v)
        for (int c = 0; c < kColumns; ++c) lanes[lane][v][c] = sums[v][c];
    }
    for (int v = 0; v < kVectors; ++v)
      for (int c = 0; c < kColumns; ++c) {
        const auto pair = [&](int lane) { return _mm512_add_pd(lanes[lane][v][c], lanes[lane + 4][v][c]); };
        const __m512d sum = _mm512_add_pd(_mm512_add_pd(pair(0), pair(2)), _mm512_add_pd(pair(1), pair(3)));
        alignas(64) double closed[8];
        _mm512_store_pd(closed, _mm512_add_pd(sum, _mm512_setzero_pd()));
        const int64_t first = row + 8 * v;
        for (int64_t i = 0; i < 8 && first + i < count; ++i) out[(first + i) * kColumns + c] = closed[i];
      }
  }
}

}  // namespace

void LookUpFourBitsAvx512(const uint8_t* codes, int64_t first, int64_t count, const double* cells,
                          double* out) {
  const __m512d low = _mm512_loadu_pd(cells), high = _mm512_loadu_pd(cells + 8);
  // A lane finds its code in the lowest four bits; what is above them does not count.
  const __m512i places = _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    int32_t eight;
    __builtin_memcpy(&eight, codes + (first + i) / 2, sizeof(eight));
    _mm512_store_pd(out + i,
                    _mm512_permutex2var_pd(low, _mm512_srlv_epi64(_mm512_set1_epi32(eight), places), high));
  }
  for (; i < count; ++i) out[i] = cells[codes[(first + i) / 2] >> ((first + i) % 2 * 4) & 15];
}

void LookUpCodesAvx512(const uint8_t* codes, int64_t count, const double* cells, int64_t tuples,
                       double* out) {
  if (tuples > kRegisterCells) return Gather(codes, count, cells, out);
  const __m512d first = _mm512_loadu_pd(cells), second = _mm512_loadu_pd(cells + 8),
                third = _mm512_loadu_pd(cells + 16), fourth = _mm512_loadu_pd(cells + 24);
  const __m512i upper = _mm512_set1_epi64(16);
  LookUp(
      codes, count, cells, out, [&](__m512i eight) __attribute__((always_inline)) {
        return _mm512_mask_blend_pd(_mm512_test_epi64_mask(eight, upper),
                                    _mm512_permutex2var_pd(first, eight, second),
                                    _mm512_permutex2var_pd(third, eight, fourth));
      });
}

void LookUpCodesAvx512(const uint16_t* codes, int64_t count, const double* cells, double* out) {
  Gather(codes, count, cells, out);
}

void MultiplyLanesAvx512(const LaneColumns& columns, int64_t count, int64_t k, double* out) {
  switch (k) {
    case 1: return MultiplyLanes<1, 8>(columns, count, out);
    case 2: return MultiplyLanes<2, 8>(columns, count, out);
    case 3: return MultiplyLanes<3, 4>(columns, count, out);
    case 4: return MultiplyLanes<4, 4>(columns, count, out);
    case 5: return MultiplyLanes<5, 4>(columns, count, out);
    case 6: return MultiplyLanes<6, 2>(columns, count, out);
    case 7: return MultiplyLanes<7, 2>(columns, count, out);
    default: return MultiplyLanes<8, 2>(columns, count, out);
  }
}

}  // namespace heddle::ops::simd
