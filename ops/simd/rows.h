// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <type_traits>

// What the loops over dense rows (aggregate.cc, matmul.cc) share. AVX2 only.
namespace heddle::ops::simd {

/// Rows of at least so many columns are taken eight at a time where accumulators are in memory.
constexpr int64_t kLongRow = 512;

/// Lane masks for the first n of four lanes; n may be negative (none) or above four (all).
inline __m256i FirstOfFour(int64_t n) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}

/// Asks for the line 1.5 KiB behind `cells`: stores between the loads slow the hardware's prefetcher down. The address
/// may lie beyond the matrix.
inline void PrefetchAhead(const double* cells) {
  _mm_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(cells) + 1536), _MM_HINT_T0);
}

/// Calls body(std::integral_constant<int, value>) when kFirst <= value <= kLast; false otherwise.
template <int kFirst, int kLast, typename Body>
inline bool WithConstant(int64_t value, const Body& body) {
  if (value == kFirst) {
    body(std::integral_constant<int, kFirst>{});
    return true;
  }
  if constexpr (kFirst < kLast) return WithConstant<kFirst + 1, kLast>(value, body);
  return false;
}

}  // namespace heddle::ops::simd
