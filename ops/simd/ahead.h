// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>
#include <stdint.h>

namespace heddle::ops::simd {

/// Memory that is read next: while a loop computes, it fetches one line after the other of it. Where the CPU brings more when
/// several pages are read side by side (MemoryStreams), the lines of as many parts take turns.
class Ahead {
 public:
  Ahead() = default;
  /// `count` doubles from `cells` on, any address will do; a line for every 2^shift lines that the loop reads.
  Ahead(const double* cells, int64_t count, int shift = 0);

  // The rest is inlined by force: loops compiled for AVX-512 use it, too.
  [[gnu::always_inline]] explicit operator bool() const { return next_ != nullptr; }
  [[gnu::always_inline]] int shift() const { return shift_; }
  [[gnu::always_inline]] bool side_by_side() const { return back_ > 0; }
  /// Where the next line comes from.
  [[gnu::always_inline]] const double* cells() const { return next_; }

  /// Into the first-level cache, or into the second one where what is at hand fills the first.
  [[gnu::always_inline]] void Fetch() { Fetch<_MM_HINT_T0>(); }
  [[gnu::always_inline]] void FetchToSecondLevel() { Fetch<_MM_HINT_T1>(); }

 private:
  template <_mm_hint kHint>
  [[gnu::always_inline]] void Fetch() {
    _mm_prefetch(reinterpret_cast<const char*>(next_), kHint);
    next_ += step_;
    if (__builtin_expect(reinterpret_cast<uintptr_t>(next_) >= end_, 0)) next_ -= back_;
  }

  const double* next_ = nullptr;
  int64_t step_ = 8;            // From part to part, or to the next line.
  uintptr_t end_ = UINTPTR_MAX;  // Of the last part: the next line of the first one follows.
  int64_t back_ = 0;
  int shift_ = 0;
};

}  // namespace heddle::ops::simd
