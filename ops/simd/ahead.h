// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>
#include <stdint.h>

namespace heddle::ops::simd {

/// Memory that is read next: while a loop computes, it fetches one line after the other of it. Where the CPU brings more when
/// several pages are read side by side (MemoryStreams), eight pages take turns: blocks of memory that begin at multiples of
/// eight pages, one after the other. (The prefetcher follows pages: parts that end within one are a few percent slower.)
class Ahead {
 public:
  Ahead() = default;
  /// What is from `next` on (any address will do), a line for every 2^shift lines that the loop reads.
  explicit Ahead(const double* next, int shift = 0);
  /// Fetches what is at hand anyway.
  static Ahead AtHand(const double* cells);

  // The rest is inlined by force: loops compiled for AVX-512 use it, too.
  [[gnu::always_inline]] explicit operator bool() const { return next_ != 0; }
  [[gnu::always_inline]] int shift() const { return shift_; }
  [[gnu::always_inline]] bool side_by_side() const { return back_ > 0; }
  /// Address in the line that the next Fetch is for.
  uint64_t next() const { return next_; }

  /// Into the first-level cache, or into the second one where what is at hand fills the first.
  [[gnu::always_inline]] void Fetch() { Fetch<_MM_HINT_T0>(); }
  [[gnu::always_inline]] void FetchToSecondLevel() { Fetch<_MM_HINT_T1>(); }

  /// Side by side: a line of each of the eight pages at once, one for every kCellsOfEight cells that the loop reads. Before the
  /// first one BeginEight goes back to the first page; it returns the cells that count as read already.
  [[gnu::always_inline]] void FetchEight() {
#pragma GCC unroll 8
    for (uint64_t page = 0; page < 8; ++page) _mm_prefetch(reinterpret_cast<const char*>(next_ + page * kPage), _MM_HINT_T1);
    next_ += kLine;
    if (__builtin_expect(next_ % kPage == 0, 0)) next_ += kBlock - kPage;
  }
  [[gnu::always_inline]] int64_t BeginEight() {
    const uint64_t page = next_ % kBlock / kPage;
    next_ -= page * kPage;
    return static_cast<int64_t>(page) * 8;
  }
  static constexpr int64_t kCellsOfEight = 64;

 private:
  static constexpr uint64_t kLine = 64, kPage = 4096, kBlock = 8 * kPage;

  template <_mm_hint kHint>
  [[gnu::always_inline]] void Fetch() {
    _mm_prefetch(reinterpret_cast<const char*>(next_), kHint);
    next_ += step_;
    if (__builtin_expect(next_ >= end_, 0)) GoBack();
  }
  [[gnu::always_inline]] void GoBack() {
    next_ -= back_;
    if (__builtin_expect(next_ % kPage == 0, 0)) {  // All lines of the pages are fetched.
      next_ += kBlock - kPage;
      end_ += kBlock;
    }
  }

  uint64_t next_ = 0;
  uint64_t step_ = kLine;       // From page to page, or to the next line.
  uint64_t end_ = UINT64_MAX;  // Of the block: the next line of its first page follows.
  uint64_t back_ = 0;
  int shift_ = 0;
};

}  // namespace heddle::ops::simd
