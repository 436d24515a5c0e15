// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/product/gemm.h"
#include "ops/simd/rows.h"

namespace heddle::ops {
namespace {

using Cell = double;
using Register = __m256d;
constexpr int kWidth = 4, kStripRows = 4, kStripColumns = 12, kUnrolled = 8, kPrefetchOfB = 0;
constexpr int64_t kBlock = 0;
constexpr bool kAnyB = false;

inline Register Zero() { return _mm256_setzero_pd(); }
inline Register Load(const double* cells) { return _mm256_loadu_pd(cells); }
inline Register LoadFirst(const double* cells, int64_t count) { return simd::LoadFirst(cells, count); }
inline Register Broadcast(const double* cell) { return _mm256_broadcast_sd(cell); }
inline Register MultiplyAdd(Register a, Register b, Register c) { return _mm256_fmadd_pd(a, b, c); }
// A masked store would take twenty cycles on some processors.
inline void StoreFirst(double* out, Register cells, int64_t count) {
  if (count == 4) return _mm256_storeu_pd(out, cells);
  const __m128d low = _mm256_castpd256_pd128(cells);
  if (count == 1) return _mm_store_sd(out, low);
  _mm_storeu_pd(out, low);
  if (count == 3) _mm_store_sd(out + 2, _mm256_extractf128_pd(cells, 1));
}
[[gnu::always_inline]] inline Register StartChain(const GemmCells& to, int row, int column, bool whole,
                                                  int64_t count) {
  const double* const c = to.c + row * to.row + column;
  return to.first ? Zero() : whole ? Load(c) : LoadFirst(c, count);
}
[[gnu::always_inline]] inline void EndChain(Register s, const GemmCells& to, int row, int column,
                                            int64_t count) {
  StoreFirst(to.c + row * to.row + column, to.last ? _mm256_add_pd(s, Zero()) : s, count);
}

}  // namespace
}  // namespace heddle::ops

#include "ops/simd/product/gemm.inc"

namespace heddle::ops {

// Eight chains at least are in flight in every tile: two additions a cycle, four cycles each.
const GemmKernel<double> kGemmAvx2 = {.rows = kStripRows,
                                      .columns = kStripColumns,
                                      .depth = 256,
                                      .tiles = {{8, 4, Run<8, 1>}, {4, 8, Run<4, 2>}, {4, 12, Run<4, 3>}},
                                      .few = HEDDLE_FEW_ROWS};

}  // namespace heddle::ops
