// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>
#include <stdint.h>

// No other headers: loops compiled for AVX-512 include this one.
namespace heddle::bench {

/// True where memory is read fastest from several pages side by side.
extern const bool kPagesSideBySide;

/// For a line that a loop reads, from which on it goes on without a gap: fetches the line `distance` cells
/// behind it (0: none), or, of the eight pages behind those that it is in, the one whose turn it is.
[[gnu::always_inline]] inline void FetchAhead(const double* cells, int64_t distance = 0) {
  if (kPagesSideBySide) {
    const uint64_t line = reinterpret_cast<uint64_t>(cells) / 64, page = line % 8, in_page = line / 8 % 64;
    _mm_prefetch(reinterpret_cast<const char*>((line / 512 * 512 + 512 + page * 64 + in_page) * 64),
                 _MM_HINT_T1);
  } else if (distance > 0) {
    _mm_prefetch(reinterpret_cast<const char*>(cells + distance), _MM_HINT_T1);
  }
}

}  // namespace heddle::bench
