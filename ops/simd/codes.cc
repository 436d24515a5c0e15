// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/codes.h"

#include <immintrin.h>

namespace heddle::ops::simd {
namespace {

uint8_t FourBitsAt(const uint8_t* codes, int64_t i) { return codes[i >> 1] >> ((i & 1) * 4) & 15; }

template <bool kAdd>
void FourBits(const uint8_t* codes, int64_t first, int64_t count, const uint8_t bytes[16], uint8_t* out) {
  const auto one = [&](int64_t i) {
    const uint8_t byte = bytes[FourBitsAt(codes, first + i)];
    out[i] = static_cast<uint8_t>(kAdd ? out[i] + byte : byte);
  };
  int64_t i = 0;
  if ((first & 1) != 0 && count > 0) one(i++);
  const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  const __m128i mask = _mm_set1_epi8(15);
  for (; i + 16 <= count; i += 16) {
    const __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + ((first + i) >> 1)));
    const __m128i low = _mm_and_si128(pairs, mask), high = _mm_and_si128(_mm_srli_epi16(pairs, 4), mask);
    __m128i found = _mm_shuffle_epi8(table, _mm_unpacklo_epi8(low, high));
    auto* const to = reinterpret_cast<__m128i*>(out + i);
    if (kAdd) found = _mm_add_epi8(found, _mm_loadu_si128(to));
    _mm_storeu_si128(to, found);
  }
  for (; i < count; ++i) one(i);
}

}  // namespace

void LookUpFourBits(const uint8_t* codes, int64_t first, int64_t count, const uint8_t bytes[16],
                    uint8_t* out) {
  FourBits<false>(codes, first, count, bytes, out);
}

void AddFourBits(const uint8_t* codes, int64_t first, int64_t count, const uint8_t bytes[16], uint8_t* out) {
  FourBits<true>(codes, first, count, bytes, out);
}

void AddScaledBytes(const uint8_t* codes, int64_t count, uint8_t factor, uint8_t* out) {
  const __m256i factors = _mm256_set1_epi16(factor), low = _mm256_set1_epi16(255);
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m256i wide = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i)));
    const __m256i products = _mm256_and_si256(_mm256_mullo_epi16(wide, factors), low);
    const __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(products), _mm256_extracti128_si256(products, 1));
    auto* const to = reinterpret_cast<__m128i*>(out + i);
    _mm_storeu_si128(to, _mm_add_epi8(bytes, _mm_loadu_si128(to)));
  }
  for (; i < count; ++i) out[i] = static_cast<uint8_t>(out[i] + codes[i] * factor);
}

void LookUpBytes(const uint8_t* codes, int64_t count, const uint8_t* bytes, int64_t tuples, uint8_t* out) {
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    // Each sixteen bytes of the table serve the codes that are theirs, and give zeros to all others.
    __m256i left = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + i));
    __m256i found = _mm256_setzero_si256();
    for (int64_t first = 0; first < tuples; first += 16) {
      const __m256i table =
          _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + first)));
      const __m256i own = _mm256_adds_epu8(left, _mm256_set1_epi8(0x70));
      found = _mm256_or_si256(found, _mm256_shuffle_epi8(table, own));
      left = _mm256_sub_epi8(left, _mm256_set1_epi8(16));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), found);
  }
  for (; i < count; ++i) out[i] = bytes[codes[i]];
}

}  // namespace heddle::ops::simd
