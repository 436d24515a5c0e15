// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>
#include <span>

// Codes of column groups (core/values/column_groups.h), many at a time. AVX2 only: it is a byte a row.
namespace heddle::ops::simd {

/// Codes of 4 bits, and a byte for each of them.
struct FourBits {
  const uint8_t* codes;
  std::array<uint8_t, 16> bytes;
};
/// out[i] = the sum, modulo 256, of the bytes for code first + i of each of `parts`; `first` is even.
void AddFourBits(std::span<const FourBits> parts, int64_t first, int64_t count, uint8_t* out);
/// out[i] += codes[i] * factor, modulo 256.
void AddScaledBytes(const uint8_t* codes, int64_t count, uint8_t factor, uint8_t* out);
/// out[i] = bytes[codes[i]], of a table of `tuples` <= 256 bytes that has zeros up to a multiple of 16.
void LookUpBytes(const uint8_t* codes, int64_t count, const uint8_t* bytes, int64_t tuples, uint8_t* out);

/// to[c] += terms[c] for c < kCount.
template <int kCount>
[[gnu::always_inline]] inline void AddTo(double* to, const double* terms) {
  int c = 0;
  for (; c + 4 <= kCount; c += 4)
    _mm256_storeu_pd(to + c, _mm256_add_pd(_mm256_loadu_pd(to + c), _mm256_loadu_pd(terms + c)));
  for (; c + 2 <= kCount; c += 2)
    _mm_storeu_pd(to + c, _mm_add_pd(_mm_loadu_pd(to + c), _mm_loadu_pd(terms + c)));
  for (; c < kCount; ++c) to[c] += terms[c];
}

}  // namespace heddle::ops::simd
