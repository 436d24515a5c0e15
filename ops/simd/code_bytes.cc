// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/code_bytes.h"

#include <immintrin.h>

#include <algorithm>

#include "ops/base/cpu.h"

namespace heddle::ops::simd {
namespace {

// Additions of a byte that stay in 16 bits.
constexpr int64_t kFit = 256;

// Adds up numbers of 16 bits, even bytes and odd ones, by their places modulo 8.
void AddPlaces(const uint16_t* even, const uint16_t* odd, int64_t count, uint64_t* sums) {
  for (int64_t i = 0; i < count; ++i) {
    sums[2 * i & 7] += even[i];
    sums[(2 * i + 1) & 7] += odd[i];
  }
}

}  // namespace

void AddOfBytes(const uint8_t* codes, int64_t count, uint64_t* sums) {
  constexpr int64_t kBytes = 32;
  const __m256i low = _mm256_set1_epi16(0xFF);
  int64_t at = 0;
  while (at + kBytes <= count) {
    const int64_t end = at + std::min(kFit, (count - at) / kBytes) * kBytes;
    __m256i even = _mm256_setzero_si256(), odd = even;
    for (; at < end; at += kBytes) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + at));
      even = _mm256_add_epi16(even, _mm256_and_si256(bytes, low));
      odd = _mm256_add_epi16(odd, _mm256_srli_epi16(bytes, 8));
    }
    alignas(32) uint16_t evens[kBytes / 2], odds[kBytes / 2];
    _mm256_store_si256(reinterpret_cast<__m256i*>(evens), even);
    _mm256_store_si256(reinterpret_cast<__m256i*>(odds), odd);
    AddPlaces(evens, odds, kBytes / 2, sums);
  }
  for (; at < count; ++at) sums[at & 7] += codes[at];
}

bool CanLookUpBytes() {
  static const bool has =
      __builtin_cpu_supports("avx512vbmi") != 0 && __builtin_cpu_supports("avx512bw") != 0;
  return has && SelectedCpu() == Cpu::kAvx512;
}

__attribute__((target("avx512f,avx512bw,avx512vbmi"))) void AddOfLookedUpBytes(const uint8_t* codes,
                                                                               int64_t count,
                                                                               const uint8_t* table,
                                                                               uint64_t* sums) {
  constexpr int64_t kBytes = 64;
  const __m512i first = _mm512_loadu_si512(table), second = _mm512_loadu_si512(table + kBytes),
                third = _mm512_loadu_si512(table + 2 * kBytes),
                fourth = _mm512_loadu_si512(table + 3 * kBytes), low = _mm512_set1_epi16(0xFF);
  int64_t at = 0;
  while (at + kBytes <= count) {
    const int64_t end = at + std::min(kFit, (count - at) / kBytes) * kBytes;
    __m512i even = _mm512_setzero_si512(), odd = even;
    for (; at < end; at += kBytes) {
      const __m512i bytes = _mm512_loadu_si512(codes + at);
      const __m512i below = _mm512_permutex2var_epi8(first, bytes, second);
      const __m512i above = _mm512_permutex2var_epi8(third, bytes, fourth);
      const __m512i found = _mm512_mask_blend_epi8(_mm512_movepi8_mask(bytes), below, above);
      even = _mm512_add_epi16(even, _mm512_and_si512(found, low));
      odd = _mm512_add_epi16(odd, _mm512_srli_epi16(found, 8));
    }
    alignas(64) uint16_t evens[kBytes / 2], odds[kBytes / 2];
    _mm512_store_si512(evens, even);
    _mm512_store_si512(odds, odd);
    AddPlaces(evens, odds, kBytes / 2, sums);
  }
  for (; at < count; ++at) sums[at & 7] += table[codes[at]];
}

}  // namespace heddle::ops::simd
