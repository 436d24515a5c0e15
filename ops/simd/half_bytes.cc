// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/half_bytes.h"

#include <immintrin.h>

#include <algorithm>

namespace heddle::ops::simd {
namespace {

constexpr int64_t kBytes = 32;  // Of a register.

__m256i Load(const uint8_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }

// A table for both halves of a register.
__m256i Table(const uint8_t* table) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
}

__m256i Low(__m256i bytes) { return _mm256_and_si256(bytes, _mm256_set1_epi8(15)); }
__m256i High(__m256i bytes) { return Low(_mm256_srli_epi16(bytes, 4)); }

uint64_t SumOfLanes(__m256i lanes) {
  uint64_t lane[4];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lane), lanes);
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

}  // namespace

void AddOfHalfBytes(const uint8_t* halves, int64_t bytes, const uint8_t* table, int most, uint64_t* sums) {
  const __m256i lookup = Table(table), zero = _mm256_setzero_si256();
  const int64_t fit = 255 / most;  // So many additions stay in a byte.
  __m256i of_byte[4][2];           // By the number of the byte modulo 4, for its low and its high half.
  for (auto& pair : of_byte) pair[0] = pair[1] = zero;
  int64_t at = 0;
  while (at + kBytes <= bytes) {
    const int64_t end = at + std::min(fit, (bytes - at) / kBytes) * kBytes;
    __m256i low = zero, high = zero;
    for (; at < end; at += kBytes) {
      const __m256i pairs = Load(halves + at);
      low = _mm256_add_epi8(low, _mm256_shuffle_epi8(lookup, Low(pairs)));
      high = _mm256_add_epi8(high, _mm256_shuffle_epi8(lookup, High(pairs)));
    }
    for (int byte = 0; byte < 4; ++byte) {
      const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xFFu << (8 * byte)));
      of_byte[byte][0] =
          _mm256_add_epi64(of_byte[byte][0], _mm256_sad_epu8(_mm256_and_si256(low, mask), zero));
      of_byte[byte][1] =
          _mm256_add_epi64(of_byte[byte][1], _mm256_sad_epu8(_mm256_and_si256(high, mask), zero));
    }
  }
  for (int byte = 0; byte < 4; ++byte)
    for (int half = 0; half < 2; ++half) sums[2 * byte + half] += SumOfLanes(of_byte[byte][half]);
  for (; at < bytes; ++at) {
    sums[2 * at & 7] += table[halves[at] & 15];
    sums[(2 * at + 1) & 7] += table[halves[at] >> 4];
  }
}

uint32_t SetOfHalfBytes(const uint8_t* halves, int64_t bytes) {
  alignas(16) constexpr uint8_t kBelow8[16] = {1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0};
  alignas(16) constexpr uint8_t kFrom8[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128};
  const __m256i below = Table(kBelow8), from = Table(kFrom8);
  __m256i set_below = _mm256_setzero_si256(), set_from = _mm256_setzero_si256();
  int64_t at = 0;
  for (; at + kBytes <= bytes; at += kBytes) {
    const __m256i pairs = Load(halves + at), low = Low(pairs), high = High(pairs);
    set_below = _mm256_or_si256(
        set_below, _mm256_or_si256(_mm256_shuffle_epi8(below, low), _mm256_shuffle_epi8(below, high)));
    set_from = _mm256_or_si256(
        set_from, _mm256_or_si256(_mm256_shuffle_epi8(from, low), _mm256_shuffle_epi8(from, high)));
  }
  alignas(32) uint8_t of_below[kBytes], of_from[kBytes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(of_below), set_below);
  _mm256_store_si256(reinterpret_cast<__m256i*>(of_from), set_from);
  uint32_t set = 0;
  for (int64_t i = 0; i < kBytes; ++i)
    set |= static_cast<uint32_t>(of_below[i]) | static_cast<uint32_t>(of_from[i]) << 8;
  for (; at < bytes; ++at) set |= 1u << (halves[at] & 15) | 1u << (halves[at] >> 4);
  return set;
}

namespace {

// What a table has for the 32 numbers of 16 bytes, in their order.
struct LookedUp {
  __m128i first, second;
};
LookedUp LookUp(const uint8_t* halves, __m128i table) {
  const __m128i mask = _mm_set1_epi8(15);
  const __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(halves));
  const __m128i low = _mm_shuffle_epi8(table, _mm_and_si128(pairs, mask));
  const __m128i high = _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(pairs, 4), mask));
  return {_mm_unpacklo_epi8(low, high), _mm_unpackhi_epi8(low, high)};
}

}  // namespace

void AddEachHalfByte(const uint8_t* halves, int64_t bytes, const uint8_t* table, uint16_t* sums) {
  const __m128i lookup = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  int64_t at = 0;
  for (; at + 16 <= bytes; at += 16) {
    const LookedUp found = LookUp(halves + at, lookup);
    auto* const to = reinterpret_cast<__m256i*>(sums + 2 * at);
    _mm256_storeu_si256(to, _mm256_add_epi16(_mm256_loadu_si256(to), _mm256_cvtepu8_epi16(found.first)));
    _mm256_storeu_si256(to + 1,
                        _mm256_add_epi16(_mm256_loadu_si256(to + 1), _mm256_cvtepu8_epi16(found.second)));
  }
  for (; at < bytes; ++at) {
    sums[2 * at] = static_cast<uint16_t>(sums[2 * at] + table[halves[at] & 15]);
    sums[2 * at + 1] = static_cast<uint16_t>(sums[2 * at + 1] + table[halves[at] >> 4]);
  }
}

void LeastOfEachHalfByte(const uint8_t* halves, int64_t bytes, const uint8_t* table, uint8_t* least) {
  const __m128i lookup = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  int64_t at = 0;
  for (; at + 16 <= bytes; at += 16) {
    const LookedUp found = LookUp(halves + at, lookup);
    auto* const to = reinterpret_cast<__m128i*>(least + 2 * at);
    _mm_storeu_si128(to, _mm_min_epu8(_mm_loadu_si128(to), found.first));
    _mm_storeu_si128(to + 1, _mm_min_epu8(_mm_loadu_si128(to + 1), found.second));
  }
  for (; at < bytes; ++at) {
    least[2 * at] = std::min(least[2 * at], table[halves[at] & 15]);
    least[2 * at + 1] = std::min(least[2 * at + 1], table[halves[at] >> 4]);
  }
}

}  // namespace heddle::ops::simd
