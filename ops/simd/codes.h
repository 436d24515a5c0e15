// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace heddle::ops::simd
