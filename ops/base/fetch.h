// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

namespace heddle::ops {

/// Asks for the cache lines of `count` elements that will be read soon; any address will do. Inlined by
/// force: GCC takes a function that only prefetches for one without effect and drops the calls that it does
/// not inline.
template <typename T>
[[gnu::always_inline]] inline void FetchLines(const T* first, int64_t count) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t k = 0; k < count; k += kLine)
    _mm_prefetch(reinterpret_cast<const char*>(first + k), _MM_HINT_T0);
}

/// to[i] = from[i] past the caches; `to` is aligned to whole lines. What is written so need not be read
/// first.
inline void StreamCells(const double* from, int64_t count, double* to) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) _mm256_stream_pd(to + i, _mm256_loadu_pd(from + i));
  std::copy(from + i, from + count, to + i);
  _mm_sfence();  // Other threads may be told at once.
}

}  // namespace heddle::ops
