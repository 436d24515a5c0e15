// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/codes/codes.h"

namespace heddle::ops::simd {
namespace {

__m128i LoadBytes(const uint8_t* bytes) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)); }
void StoreBytes(uint8_t* to, __m128i bytes) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes); }

}  // namespace

void AddFourBits(std::span<const FourBits> parts, int64_t first, int64_t count, uint8_t* out) {
  const __m128i mask = _mm_set1_epi8(15);
  int64_t i = 0;
  // Of 16 bytes the codes with even numbers, and those with odd ones, are looked up apart.
  const auto add = [&](auto load) __attribute__((always_inline)) {
    __m128i even = _mm_setzero_si128(), odd = even;
    for (const FourBits& part : parts) {
      const __m128i table = LoadBytes(part.bytes.data()), pairs = load(part.codes + ((first + i) >> 1));
      even = _mm_add_epi8(even, _mm_shuffle_epi8(table, _mm_and_si128(pairs, mask)));
      odd = _mm_add_epi8(odd, _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(pairs, 4), mask)));
    }
    StoreBytes(out + i, _mm_unpacklo_epi8(even, odd));
    return _mm_unpackhi_epi8(even, odd);
  };
  for (; i + 32 <= count; i += 32) StoreBytes(out + i + 16, add(LoadBytes));
  for (; i + 16 <= count; i += 16)
    add([](const uint8_t* bytes) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)); });
  for (; i < count; ++i) {
    uint8_t sum = 0;
    for (const FourBits& part : parts) {
      const int64_t code = first + i;
      sum = static_cast<uint8_t>(sum + part.bytes[part.codes[code >> 1] >> ((code & 1) * 4) & 15]);
    }
    out[i] = sum;
  }
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
