// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>
#include <stdint.h>

#include "ops/simd/product/gemm.h"

namespace heddle::ops {
namespace {

using Cell = float;
using Register = __m512;
// A strip of B does not stay in the first-level cache: its lines are fetched kPrefetchOfB floats ahead.
constexpr int kWidth = 16, kStripRows = 8, kStripColumns = 48, kUnrolled = 4, kPrefetchOfB = 768;
constexpr int64_t kBlock = kSingleBlock;
constexpr bool kAnyB = true;

inline Register Zero() { return _mm512_setzero_ps(); }
inline Register Load(const float* cells) { return _mm512_loadu_ps(cells); }
inline __mmask16 FirstLanes(int64_t count) { return static_cast<__mmask16>(0xffff >> (16 - count)); }
inline Register LoadFirst(const float* cells, int64_t count) {
  return _mm512_maskz_loadu_ps(FirstLanes(count), cells);
}
inline Register Broadcast(const float* cell) { return _mm512_set1_ps(*cell); }
inline Register MultiplyAdd(Register a, Register b, Register c) { return _mm512_fmadd_ps(a, b, c); }
[[gnu::always_inline]] inline Register StartChain(const GemmCells& to, int row, int column, bool whole,
                                                  int64_t count) {
  if (!to.open || to.first) return Zero();
  const float* const chains = to.singles + row * to.singles_row + column;
  return whole ? Load(chains) : LoadFirst(chains, count);
}
// Where the plain intrinsic reads an "undefined" register, GCC 12 warns of it; the zero-masked form makes the
// same code.
[[gnu::always_inline]] inline void EndChain(Register s, const GemmCells& to, int row, int column,
                                            int64_t count) {
  const __mmask16 lanes = FirstLanes(count);
  if (to.open) return _mm512_mask_storeu_ps(to.singles + row * to.singles_row + column, lanes, s);
  // The sum of one block is its chain, but that it is never -0.0.
  if (to.first && to.last && to.singles != nullptr)
    return _mm512_mask_storeu_ps(to.singles + row * to.singles_row + column, lanes, _mm512_add_ps(s, Zero()));
  const auto low_lanes = static_cast<__mmask8>(lanes), high_lanes = static_cast<__mmask8>(lanes >> 8);
  const __m256 low_half = _mm512_maskz_extractf32x8_ps(0xff, s, 0),
               high_half = _mm512_maskz_extractf32x8_ps(0xff, s, 1);
  __m512d low = _mm512_setzero_pd(), high = low;
  if (!to.first) {
    const double* const c = to.c + row * to.row + column;
    low = _mm512_maskz_loadu_pd(low_lanes, c);
    high = _mm512_maskz_loadu_pd(high_lanes, c + 8);
  }
  low = _mm512_add_pd(low, _mm512_maskz_cvtps_pd(0xff, low_half));
  high = _mm512_add_pd(high, _mm512_maskz_cvtps_pd(0xff, high_half));
  if (to.last && to.singles != nullptr) {
    float* const singles = to.singles + row * to.singles_row + column;
    const __m512 both =
        _mm512_maskz_insertf32x8(0xffff, _mm512_castps256_ps512(_mm512_maskz_cvtpd_ps(0xff, low)),
                                 _mm512_maskz_cvtpd_ps(0xff, high), 1);
    return _mm512_mask_storeu_ps(singles, lanes, both);
  }
  double* const c = to.c + row * to.row + column;
  _mm512_mask_storeu_pd(c, low_lanes, low);
  _mm512_mask_storeu_pd(c + 8, high_lanes, high);
}

}  // namespace
}  // namespace heddle::ops

#include "ops/simd/product/gemm.inc"

namespace heddle::ops {

const GemmKernel<float> kSingleGemmAvx512 = {
    .rows = kStripRows,
    .columns = kStripColumns,
    .depth = kSingleDepth,
    .tiles = {{8, 16, Run<8, 1>}, {8, 32, Run<8, 2>}, {8, 48, Run<8, 3>}},
    .low = {4, 48, Run<4, 3>},
    .any_b = true,
    .few = HEDDLE_FEW_ROWS};

}  // namespace heddle::ops
