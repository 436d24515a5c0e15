// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>
#include <stdint.h>

#include "ops/simd/product/gemm.h"

namespace heddle::ops {
namespace {

using Cell = double;
using Register = __m512d;
// A strip of B does not stay in the first-level cache: its lines are fetched kPrefetchOfB doubles ahead.
constexpr int kWidth = 8, kStripRows = 8, kStripColumns = 24, kUnrolled = 4, kPrefetchOfB = 384;
constexpr int64_t kBlock = 0;
constexpr bool kAnyB = true;

inline Register Zero() { return _mm512_setzero_pd(); }
inline Register Load(const double* cells) { return _mm512_loadu_pd(cells); }
inline __mmask8 FirstLanes(int64_t count) { return static_cast<__mmask8>(0xff >> (8 - count)); }
inline Register LoadFirst(const double* cells, int64_t count) {
  return _mm512_maskz_loadu_pd(FirstLanes(count), cells);
}
inline Register Broadcast(const double* cell) { return _mm512_set1_pd(*cell); }
inline Register MultiplyAdd(Register a, Register b, Register c) { return _mm512_fmadd_pd(a, b, c); }
inline void StoreFirst(double* out, Register cells, int64_t count) {
  _mm512_mask_storeu_pd(out, FirstLanes(count), cells);
}
[[gnu::always_inline]] inline Register StartChain(const GemmCells& to, int row, int column, bool whole,
                                                  int64_t count) {
  const double* const c = to.c + row * to.row + column;
  return to.first ? Zero() : whole ? Load(c) : LoadFirst(c, count);
}
[[gnu::always_inline]] inline void EndChain(Register s, const GemmCells& to, int row, int column,
                                            int64_t count) {
  StoreFirst(to.c + row * to.row + column, to.last ? _mm512_add_pd(s, Zero()) : s, count);
}

}  // namespace
}  // namespace heddle::ops

#include "ops/simd/product/gemm.inc"

namespace heddle::ops {

const GemmKernel<double> kGemmAvx512 = {.rows = kStripRows,
                                        .columns = kStripColumns,
                                        .depth = 512,
                                        .tiles = {{8, 8, Run<8, 1>}, {8, 16, Run<8, 2>}, {8, 24, Run<8, 3>}},
                                        .low = {4, 24, Run<4, 3>},
                                        .any_b = true,
                                        .few = HEDDLE_FEW_ROWS};

}  // namespace heddle::ops
