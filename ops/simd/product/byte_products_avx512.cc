// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/product/byte_products.h"

namespace heddle::ops::simd {
namespace {

constexpr int kSide = 5;

int64_t SumOf(const int32_t* lanes) {
  const auto* const eights = reinterpret_cast<const __m256i*>(lanes);
  const __m256i eight = _mm256_add_epi32(_mm256_load_si256(eights), _mm256_load_si256(eights + 1));
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}

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
  alignas(64) int32_t lanes[kSide * kSide][16];
#pragma GCC unroll 8
  for (int i = 0; i < kSide; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < kSide; ++j) _mm512_store_si512(lanes[i * kSide + j], blocks[i][j]);
  for (int place = 0; place < kSide * kSide; ++place) sums[place] += SumOf(lanes[place]);
}

}  // namespace

const ByteProductKernel kByteProductsVnni = {kSide, Add};

}  // namespace heddle::ops::simd
