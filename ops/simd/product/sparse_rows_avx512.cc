// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/product/few_columns.h"
#include "ops/simd/vector.h"

namespace heddle::ops::simd {
namespace {

using avx512::FirstLanes, avx512::kAllLanes;

// Sums of one pass over the entries; the others of the 32 registers hold cells on the way.
constexpr int kMostSums = 24;

template <int kVectors>
void RowInRegisters(const double* values, const int32_t* columns, int64_t entries, const double* b,
                    int64_t b_stride, __mmask8 mask, double* out) {
  constexpr int kLast = kVectors - 1;
  __m512d sums[kVectors];
#pragma GCC unroll 24
  for (int v = 0; v < kVectors; ++v) sums[v] = _mm512_setzero_pd();
  for (int64_t e = 0; e < entries; ++e) {
    if (values[e] == 0.0) continue;
    const double* row = b + columns[e] * b_stride;
    const __m512d value = _mm512_set1_pd(values[e]);
#pragma GCC unroll 24
    for (int v = 0; v < kLast; ++v) sums[v] = _mm512_fmadd_pd(_mm512_loadu_pd(row + 8 * v), value, sums[v]);
    sums[kLast] = _mm512_fmadd_pd(_mm512_maskz_loadu_pd(mask, row + 8 * kLast), value, sums[kLast]);
  }
#pragma GCC unroll 24
  for (int v = 0; v < kVectors; ++v) sums[v] = _mm512_add_pd(sums[v], _mm512_setzero_pd());
#pragma GCC unroll 24
  for (int v = 0; v < kLast; ++v) _mm512_storeu_pd(out + 8 * v, sums[v]);
  _mm512_mask_storeu_pd(out + 8 * kLast, mask, sums[kLast]);
}

template <int kVectors = 1>
auto RowOf(int64_t vectors) {
  if constexpr (kVectors < kMostSums) {
    if (vectors > kVectors) return RowOf<kVectors + 1>(vectors);
  }
  return RowInRegisters<kVectors>;
}

}  // namespace

void MultiplySparseRowAvx512(const double* values, const int32_t* columns, int64_t entries, const double* b,
                             int64_t b_stride, int64_t n, double* out) {
  const int64_t vectors = (n + 7) / 8, passes = (vectors + kMostSums - 1) / kMostSums,
                longer = vectors % passes;
  for (int64_t pass = 0, first = 0, here; pass < passes; ++pass, first += here) {
    here = vectors / passes + (pass < longer ? 1 : 0);
    const int64_t left = n - 8 * (first + here - 1);
    RowOf(here)(values, columns, entries, b + 8 * first, b_stride, left >= 8 ? kAllLanes : FirstLanes(left),
                out + 8 * first);
  }
}

}  // namespace heddle::ops::simd
