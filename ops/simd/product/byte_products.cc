// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/product/byte_products.h"

#include <immintrin.h>

#include "ops/base/cpu.h"

namespace heddle::ops::simd {
namespace {

constexpr int kSide = 3;

int64_t SumOf(__m256i sums) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}

// Products of two numbers below 128 fit into 15 bits in pairs.
void Add(const uint8_t* a, const uint8_t* b, int64_t stride, int64_t rows, int64_t* sums) {
  __m256i blocks[kSide][kSide];
  for (auto& row : blocks)
    for (__m256i& sum : row) sum = _mm256_setzero_si256();
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t r = 0; r < rows; r += 32) {
    __m256i left[kSide];
#pragma GCC unroll 8
    for (int i = 0; i < kSide; ++i)
      left[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i * stride + r));
#pragma GCC unroll 8
    for (int j = 0; j < kSide; ++j) {
      const __m256i right = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + j * stride + r));
#pragma GCC unroll 8
      for (int i = 0; i < kSide; ++i)
        blocks[i][j] =
            _mm256_add_epi32(blocks[i][j], _mm256_madd_epi16(_mm256_maddubs_epi16(left[i], right), ones));
    }
  }
  for (int i = 0; i < kSide; ++i)
    for (int j = 0; j < kSide; ++j) sums[i * kSide + j] += SumOf(blocks[i][j]);
}

}  // namespace

const ByteProductKernel kByteProductsAvx2 = {kSide, Add};

bool ToBytes(const double* cells, int64_t count, uint8_t* bytes) {
  constexpr int64_t kTogether = 16;
  constexpr int kDigit = 127;
  __m128i outside = _mm_setzero_si128();  // Bits beyond the digit.
  __m256d same = _mm256_castsi256_pd(_mm256_set1_epi64x(-1));
  const auto four_of = [&](const double* from) __attribute__((always_inline)) {
    const __m256d four = _mm256_loadu_pd(from);
    // What is no number of 32 bits, and NaN, becomes one that differs.
    const __m128i numbers = _mm256_cvttpd_epi32(four);
    same = _mm256_and_pd(same, _mm256_cmp_pd(four, _mm256_cvtepi32_pd(numbers), _CMP_EQ_OQ));
    outside = _mm_or_si128(outside, numbers);
    return numbers;
  };
  int64_t i = 0;
  for (; i + kTogether <= count; i += kTogether) {
    const __m128i low = _mm_packus_epi32(four_of(cells + i), four_of(cells + i + 4));
    const __m128i high = _mm_packus_epi32(four_of(cells + i + 8), four_of(cells + i + 12));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + i), _mm_packus_epi16(low, high));
  }
  if (_mm256_movemask_pd(same) != 15 || _mm_testz_si128(outside, _mm_set1_epi32(~kDigit)) == 0) return false;
  for (; i < count; ++i) {
    if (!(cells[i] >= 0 && cells[i] <= kDigit)) return false;
    bytes[i] = static_cast<uint8_t>(cells[i]);
    if (static_cast<double>(bytes[i]) != cells[i]) return false;
  }
  return true;
}

const ByteProductKernel& SelectedByteProducts() {
  static const bool has_vnni = __builtin_cpu_supports("avx512vnni");
  return has_vnni && SelectedCpu() == Cpu::kAvx512 ? kByteProductsVnni : kByteProductsAvx2;
}

}  // namespace heddle::ops::simd
