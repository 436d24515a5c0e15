// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Loops over numbers of 4 bits, two in a byte, the even one in its low half: codes of up to 16 tuples
// (core/values/column_groups.h). Tables have 16 bytes. AVX2 on every CPU: 64 numbers take some ten
// instructions, which is as fast as memory.
namespace heddle::ops::simd {

/// sums[i mod 8] += table[number i] for the 2 * bytes numbers. No byte of the table is larger than `most`,
/// from 1 to 15.
void AddOfHalfBytes(const uint8_t* halves, int64_t bytes, const uint8_t* table, int most, uint64_t* sums);

/// The numbers that occur among the 2 * bytes: bit k of the result for k.
uint32_t SetOfHalfBytes(const uint8_t* halves, int64_t bytes);

/// sums[i] += table[number i] for the 2 * bytes numbers.
void AddEachHalfByte(const uint8_t* halves, int64_t bytes, const uint8_t* table, uint16_t* sums);

/// least[i] = the smaller one of itself and table[number i] for the 2 * bytes numbers.
void LeastOfEachHalfByte(const uint8_t* halves, int64_t bytes, const uint8_t* table, uint8_t* least);

}  // namespace heddle::ops::simd
