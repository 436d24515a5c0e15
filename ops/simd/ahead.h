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

  [[gnu::always_inline]] void Fetch() {
    _mm_prefetch(reinterpret_cast<const char*>(next_), _MM_HINT_T0);
    next_ += step_;
    if (--turn_ > 0) return;
    next_ -= back_;
    turn_ = streams_;
  }

 private:
  const double* next_ = nullptr;
  int64_t step_ = 8, back_ = 0, streams_ = INT64_MAX, turn_ = INT64_MAX;
  int shift_ = 0;
};

}  // namespace heddle::ops::simd
