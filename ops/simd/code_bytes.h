// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Loops over codes of one byte (core/values/column_groups.h).
namespace heddle::ops::simd {

/// sums[i mod 8] += codes[i], i < count. AVX2.
void AddOfBytes(const uint8_t* codes, int64_t count, uint64_t* sums);

/// Whether this machine, and what ForceCpu has said, let 64 bytes be looked up at once (AVX-512 VBMI).
bool CanLookUpBytes();
/// sums[i mod 8] += table[codes[i]], i < count; the table has 256 bytes. Only where CanLookUpBytes().
void AddOfLookedUpBytes(const uint8_t* codes, int64_t count, const uint8_t* table, uint64_t* sums);

}  // namespace heddle::ops::simd
