// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/product/byte_products.h"

namespace heddle::ops::simd {
namespace {

constexpr int kSide = 5;

// Four products in each of sixteen sums.
__attribute__((target("avx512vnni"))) void Add(const uint8_t* a, const uint8_t* b, int64_t stride,
                                               int64_t rows, int64_t* sums) {
  __m512i blocks[kSide][kSide];
#pragma GCC unroll 8
  for (int i = 0; i < kSide; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < kSide; ++j) blocks[i][j] = _mm512_setzero_si512();
  for (int64_t r = 0; r < rows; r += 64) {
    __m512i left[kSide];
#pragma GCC unroll 8
    for (int i = 0; i < kSide; ++i) left[i] = _mm512_loadu_si512(a + i * stride + r);
#pragma GCC unroll 8
    for (int j = 0; j < kSide; ++j) {
      const __m512i right = _mm512_loadu_si512(b + j * stride + r);
#pragma GCC unroll 8
      for (int i = 0; i < kSide; ++i) blocks[i][j] = _mm512_dpbusd_epi32(blocks[i][j], left[i], right);
    }
  }
  alignas(64) int32_t lanes[16];
#pragma GCC unroll 8
  for (int i = 0; i < kSide; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < kSide; ++j) {
      _mm512_store_si512(lanes, blocks[i][j]);
      int64_t sum = 0;
      for (int lane = 0; lane < 16; ++lane) sum += lanes[lane];
      sums[i * kSide + j] += sum;
    }
}

}  // namespace

const ByteProductKernel kByteProductsVnni = {kSide, Add};

}  // namespace heddle::ops::simd
