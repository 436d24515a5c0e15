// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/gemm.h"

namespace heddle::ops {
// Every loop over the accumulators is unrolled, or they would live in memory.
namespace {

constexpr int kStripRows = 8;

template <int kVectors>
void Run(int64_t depth, const GemmRows& rows, const double* b, double* c, int64_t c_stride, int64_t width,
         bool first, bool last) {
  const auto last_lanes = static_cast<__mmask8>(0xff >> (8 * kVectors - width));
  __m512d s[kStripRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kStripRows; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v)
      s[r][v] = first ? _mm512_setzero_pd()
                      : _mm512_maskz_loadu_pd(v + 1 < kVectors ? 0xff : last_lanes, c + r * c_stride + 8 * v);
  const double* a = rows.a;
  const int64_t row = rows.row, column = rows.column;
  const auto add = [&](int64_t count) __attribute__((always_inline)) {
    for (int64_t k = 0; k < count; ++k, a += column, b += 8 * kVectors) {
      __m512d cells[kVectors];
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) cells[v] = _mm512_loadu_pd(b + 8 * v);
#pragma GCC unroll 8
      for (int r = 0; r < kStripRows; ++r) {
        const __m512d x = _mm512_set1_pd(a[r * row]);
#pragma GCC unroll 3
        for (int v = 0; v < kVectors; ++v) s[r][v] = _mm512_fmadd_pd(x, cells[v], s[r][v]);
      }
    }
  };
  if (rows.ahead == nullptr) {
    add(depth);
  } else {
    for (int64_t k = 0; k < depth; k += 8) {
      for (int64_t r = 0; r < rows.ahead_rows; ++r)
        _mm_prefetch(reinterpret_cast<const char*>(rows.ahead + r * rows.ahead_row + k), _MM_HINT_T0);
      add(k + 8 <= depth ? 8 : depth - k);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kStripRows; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v)
      _mm512_mask_storeu_pd(c + r * c_stride + 8 * v, v + 1 < kVectors ? 0xff : last_lanes,
                            last ? _mm512_add_pd(s[r][v], _mm512_setzero_pd()) : s[r][v]);
}

}  // namespace

const GemmKernel kGemmAvx512 = {kStripRows, 24, 160, {{8, 8, Run<1>}, {8, 16, Run<2>}, {8, 24, Run<3>}}};

}  // namespace heddle::ops
