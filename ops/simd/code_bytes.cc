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

#define HEDDLE_LOOKS_UP_BYTES __attribute__((target("avx512f,avx512bw,avx512vbmi")))

namespace {

// A table of 256 bytes in registers.
class ByteTable {
 public:
  HEDDLE_LOOKS_UP_BYTES explicit ByteTable(const uint8_t* table)
      : first_(_mm512_loadu_si512(table)),
        second_(_mm512_loadu_si512(table + 64)),
        third_(_mm512_loadu_si512(table + 128)),
        fourth_(_mm512_loadu_si512(table + 192)) {}
  // What it has for 64 codes.
  HEDDLE_LOOKS_UP_BYTES __m512i Of(const uint8_t* codes) const {
    const __m512i bytes = _mm512_loadu_si512(codes);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(bytes),
                                  _mm512_permutex2var_epi8(first_, bytes, second_),
                                  _mm512_permutex2var_epi8(third_, bytes, fourth_));
  }

 private:
  __m512i first_, second_, third_, fourth_;
};

}  // namespace

HEDDLE_LOOKS_UP_BYTES void AddOfLookedUpBytes(const uint8_t* codes, int64_t count, const uint8_t* table,
                                              uint64_t* sums) {
  constexpr int64_t kBytes = 64;
  const ByteTable lookup(table);
  const __m512i low = _mm512_set1_epi16(0xFF);
  int64_t at = 0;
  while (at + kBytes <= count) {
    const int64_t end = at + std::min(kFit, (count - at) / kBytes) * kBytes;
    __m512i even = _mm512_setzero_si512(), odd = even;
    for (; at < end; at += kBytes) {
      const __m512i found = lookup.Of(codes + at);
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

HEDDLE_LOOKS_UP_BYTES void AddEachLookedUpByte(const uint8_t* codes, int64_t count, const uint8_t* table,
                                               uint16_t* sums) {
  const ByteTable lookup(table);
  int64_t at = 0;
  for (; at + 64 <= count; at += 64) {
    const __m512i found = lookup.Of(codes + at);
    const __m512i first = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(found));
    const __m512i second = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(found, 1));
    _mm512_storeu_si512(sums + at, _mm512_add_epi16(_mm512_loadu_si512(sums + at), first));
    _mm512_storeu_si512(sums + at + 32, _mm512_add_epi16(_mm512_loadu_si512(sums + at + 32), second));
  }
  for (; at < count; ++at) sums[at] = static_cast<uint16_t>(sums[at] + table[codes[at]]);
}

HEDDLE_LOOKS_UP_BYTES void LeastOfEachLookedUpByte(const uint8_t* codes, int64_t count, const uint8_t* table,
                                                   uint8_t* least) {
  const ByteTable lookup(table);
  int64_t at = 0;
  for (; at + 64 <= count; at += 64)
    _mm512_storeu_si512(least + at, _mm512_min_epu8(_mm512_loadu_si512(least + at), lookup.Of(codes + at)));
  for (; at < count; ++at) least[at] = std::min(least[at], table[codes[at]]);
}

void AddOfLookedUp(const uint16_t* codes, int64_t count, const double* table, double* sums) {
  __m256d first = _mm256_loadu_pd(sums), second = _mm256_loadu_pd(sums + 4), third = _mm256_setzero_pd(),
          fourth = third;
  const auto four = [&](int64_t at) {
    return _mm256_i32gather_pd(
        table, _mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + at))), 8);
  };
  int64_t at = 0;
  for (; at + 16 <= count; at += 16) {
    first = _mm256_add_pd(first, four(at));
    second = _mm256_add_pd(second, four(at + 4));
    third = _mm256_add_pd(third, four(at + 8));
    fourth = _mm256_add_pd(fourth, four(at + 12));
  }
  _mm256_storeu_pd(sums, _mm256_add_pd(first, third));
  _mm256_storeu_pd(sums + 4, _mm256_add_pd(second, fourth));
  for (; at < count; ++at) sums[at & 7] += table[codes[at]];
}

}  // namespace heddle::ops::simd
