// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/product/gemm.h"
#include "ops/simd/rows.h"

namespace heddle::ops {
namespace {

using Cell = float;
using Register = __m256;
constexpr int kWidth = 8, kStripRows = 4, kStripColumns = 24, kUnrolled = 8, kPrefetchOfB = 0;
constexpr int64_t kBlock = kSingleBlock;
constexpr bool kAnyB = false;

inline Register Zero() { return _mm256_setzero_ps(); }
inline Register Load(const float* cells) { return _mm256_loadu_ps(cells); }
inline Register Broadcast(const float* cell) { return _mm256_broadcast_ss(cell); }
inline Register LoadFirst(const float* cells, int64_t count) { return simd::LoadFirstOfEight(cells, count); }
inline Register MultiplyAdd(Register a, Register b, Register c) { return _mm256_fmadd_ps(a, b, c); }
[[gnu::always_inline]] inline Register StartChain(const GemmCells& to, int row, int column, bool whole,
                                                  int64_t count) {
  if (!to.open || to.first) return Zero();
  const float* const chains = to.singles + row * to.singles_row + column;
  return whole ? Load(chains) : LoadFirst(chains, count);
}
// The last cells of a row, one by one: a masked store takes twenty cycles on some processors.
[[gnu::noinline]] void EndFew(const float* chains, const GemmCells& to, int row, int column, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (to.open) {
      to.singles[row * to.singles_row + column + i] = chains[i];
      continue;
    }
    const int64_t at = row * to.row + column + i;
    const double sum = (to.first ? 0.0 : to.c[at]) + static_cast<double>(chains[i]);
    if (to.last && to.singles != nullptr)
      to.singles[row * to.singles_row + column + i] = static_cast<float>(sum);
    else
      to.c[at] = sum;
  }
}
[[gnu::always_inline]] inline void EndChain(Register s, const GemmCells& to, int row, int column,
                                            int64_t count) {
  if (count < kWidth) {
    alignas(32) float chains[kWidth];
    _mm256_store_ps(chains, s);
    return EndFew(chains, to, row, column, count);
  }
  if (to.open) return _mm256_storeu_ps(to.singles + row * to.singles_row + column, s);
  // The sum of one block is its chain, but that it is never -0.0.
  if (to.first && to.last && to.singles != nullptr)
    return _mm256_storeu_ps(to.singles + row * to.singles_row + column, _mm256_add_ps(s, Zero()));
  __m256d low = _mm256_setzero_pd(), high = low;
  if (!to.first) {
    const double* const c = to.c + row * to.row + column;
    low = _mm256_loadu_pd(c);
    high = _mm256_loadu_pd(c + 4);
  }
  low = _mm256_add_pd(low, _mm256_cvtps_pd(_mm256_castps256_ps128(s)));
  high = _mm256_add_pd(high, _mm256_cvtps_pd(_mm256_extractf128_ps(s, 1)));
  if (to.last && to.singles != nullptr) {
    float* const singles = to.singles + row * to.singles_row + column;
    _mm_storeu_ps(singles, _mm256_cvtpd_ps(low));
    return _mm_storeu_ps(singles + 4, _mm256_cvtpd_ps(high));
  }
  double* const c = to.c + row * to.row + column;
  _mm256_storeu_pd(c, low);
  _mm256_storeu_pd(c + 4, high);
}

}  // namespace
}  // namespace heddle::ops

#include "ops/simd/product/gemm.inc"

namespace heddle::ops {

const GemmKernel<float> kSingleGemmAvx2 = {
    .rows = kStripRows,
    .columns = kStripColumns,
    .depth = kSingleDepth,
    .tiles = {{8, 8, Run<8, 1>}, {4, 16, Run<4, 2>}, {4, 24, Run<4, 3>}},
    .few = HEDDLE_FEW_ROWS};

}  // namespace heddle::ops
