// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

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

}  // namespace heddle::ops
