// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/gemm.h"

namespace heddle::ops {
// Every loop over the accumulators is unrolled, or they would live in memory.
namespace {

void Run(int64_t depth, const double* a, const double* b, double* c, int64_t c_stride, bool first,
         bool last) {
  __m256d s[4][3];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < 3; ++v)
      s[r][v] = first ? _mm256_setzero_pd() : _mm256_loadu_pd(c + r * c_stride + 4 * v);
#pragma GCC unroll 2
  for (int64_t k = 0; k < depth; ++k, a += 4, b += 12) {
    const __m256d b0 = _mm256_load_pd(b), b1 = _mm256_load_pd(b + 4), b2 = _mm256_load_pd(b + 8);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const __m256d x = _mm256_broadcast_sd(a + r);
      s[r][0] = _mm256_fmadd_pd(x, b0, s[r][0]);
      s[r][1] = _mm256_fmadd_pd(x, b1, s[r][1]);
      s[r][2] = _mm256_fmadd_pd(x, b2, s[r][2]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < 3; ++v)
      _mm256_storeu_pd(c + r * c_stride + 4 * v,
                       last ? _mm256_add_pd(s[r][v], _mm256_setzero_pd()) : s[r][v]);
}

}  // namespace

const GemmKernel kGemmAvx2 = {4, 12, Run};

}  // namespace heddle::ops
