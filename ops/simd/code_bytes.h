// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Loops over codes of one byte and of two (core/values/column_groups.h).
namespace heddle::ops::simd {

/// sums[i mod 8] += codes[i], i < count. AVX2.
void AddOfBytes(const uint8_t* codes, int64_t count, uint64_t* sums);

/// Whether this machine, and what ForceCpu has said, let 64 bytes be looked up at once (AVX-512 VBMI).
bool CanLookUpBytes();
/// sums[i mod 8] += table[codes[i]], i < count; the table has 256 bytes. Only where CanLookUpBytes().
void AddOfLookedUpBytes(const uint8_t* codes, int64_t count, const uint8_t* table, uint64_t* sums);

/// sums[i] += table[codes[i]], modulo 2^16, and least[i] = the smaller one of itself and table[codes[i]];
/// i < count. Only where CanLookUpBytes().
void AddEachLookedUpByte(const uint8_t* codes, int64_t count, const uint8_t* table, uint16_t* sums);
void LeastOfEachLookedUpByte(const uint8_t* codes, int64_t count, const uint8_t* table, uint8_t* least);

/// sums[i mod 8] += table[codes[i]], i < count, in any order. AVX2.
void AddOfLookedUp(const uint16_t* codes, int64_t count, const double* table, double* sums);

}  // namespace heddle::ops::simd
