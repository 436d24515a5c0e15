// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Codes of column groups (core/values/column_groups.h), many at a time. AVX2 only: it is a byte a row.
namespace heddle::ops::simd {

/// out[i] = bytes[code first + i] for `count` codes of 4 bits.
void LookUpFourBits(const uint8_t* codes, int64_t first, int64_t count, const uint8_t bytes[16],
                    uint8_t* out);
/// out[i] += bytes[code first + i], modulo 256.
void AddFourBits(const uint8_t* codes, int64_t first, int64_t count, const uint8_t bytes[16], uint8_t* out);
/// out[i] += codes[i] * factor, modulo 256.
void AddScaledBytes(const uint8_t* codes, int64_t count, uint8_t factor, uint8_t* out);
/// out[i] = bytes[codes[i]], of a table of `tuples` <= 256 bytes that has zeros up to a multiple of 16.
void LookUpBytes(const uint8_t* codes, int64_t count, const uint8_t* bytes, int64_t tuples, uint8_t* out);

}  // namespace heddle::ops::simd
