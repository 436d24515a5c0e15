// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/gemm.h"

namespace heddle::ops {
// Every loop over the accumulators is unrolled, or they would live in memory.
namespace {

void Run(int64_t depth, const double* a, const double* b, double* c, int64_t c_stride, bool first,
         bool last) {
  __m512d s[8][3];
#pragma GCC unroll 8
  for (int r = 0; r < 8; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < 3; ++v)
      s[r][v] = first ? _mm512_setzero_pd() : _mm512_loadu_pd(c + r * c_stride + 8 * v);
  for (int64_t k = 0; k < depth; ++k, a += 8, b += 24) {
    const __m512d b0 = _mm512_load_pd(b), b1 = _mm512_load_pd(b + 8), b2 = _mm512_load_pd(b + 16);
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) {
      const __m512d x = _mm512_set1_pd(a[r]);
      s[r][0] = _mm512_fmadd_pd(x, b0, s[r][0]);
      s[r][1] = _mm512_fmadd_pd(x, b1, s[r][1]);
      s[r][2] = _mm512_fmadd_pd(x, b2, s[r][2]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < 8; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < 3; ++v)
      _mm512_storeu_pd(c + r * c_stride + 8 * v,
                       last ? _mm512_add_pd(s[r][v], _mm512_setzero_pd()) : s[r][v]);
}

}  // namespace

const GemmKernel kGemmAvx512 = {8, 24, Run};

}  // namespace heddle::ops
