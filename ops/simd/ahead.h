// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>
#include <stdint.h>

namespace heddle::ops::simd {

/// Memory that is read next: while a loop computes, it fetches one line after the other of it. Where the CPU
/// brings more when several pages are read side by side (MemoryStreams), eight pages take turns: blocks of
/// memory that begin at multiples of eight pages, one after the other. (The prefetcher follows pages: parts
/// that end within one are a few percent slower.)
class Ahead {
 public:
  /// How far ahead loops fetch that read one array from memory, side by side.
  static constexpr int64_t kStreamedCells = 4096;

  Ahead() = default;
  /// What is from `next` on (any address will do), a line for every 2^shift lines that the loop reads.
  explicit Ahead(const double* next, int shift = 0) { Begin(next, shift); }
  /// The same, in place: what is assigned is read in pieces other than those just written, and the CPU waits.
  void Begin(const double* next, int shift);
  /// Fetches what is at hand anyway.
  static Ahead AtHand(const double* cells, int shift = 0);

  // The rest is inlined by force: loops compiled for AVX-512 use it, too.
  [[gnu::always_inline]] explicit operator bool() const { return next_ != 0; }
  [[gnu::always_inline]] int shift() const { return shift_; }
  [[gnu::always_inline]] bool side_by_side() const { return back_ > 0; }
  /// Address in the line that the next Fetch is for.
  [[gnu::always_inline]] uint64_t next() const { return next_; }
  /// Goes on where `copy`, made of this, has got to. (Not assigned, as for Begin.)
  [[gnu::always_inline]] void GoOnFrom(const Ahead& copy) {
    next_ = copy.next_;
    end_ = copy.end_;
  }
  /// Fetches lines up to that address, where one page is read after the other: what whole lines do not count.
  [[gnu::always_inline]] void CatchUp(uint64_t address) {
    while (next_ < address) Fetch();
  }

  /// Into the first-level cache where that is as fast (FetchesToFirstLevel), or into the second one, also
  /// where what is at hand fills the first.
  [[gnu::always_inline]] void Fetch() { first_level_ ? Fetch<_MM_HINT_T0>() : Fetch<_MM_HINT_T1>(); }
  [[gnu::always_inline]] void FetchToSecondLevel() { Fetch<_MM_HINT_T1>(); }

 private:
  friend class EightAhead;
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
  uint64_t step_ = kLine;      // From page to page, or to the next line.
  uint64_t end_ = UINT64_MAX;  // Of the block: the next line of its first page follows.
  uint64_t back_ = 0;
  int shift_ = 0;
  bool first_level_ = true;
};

/// For loops over rows without gaps that fetch a line for every whole line of a row: where lines follow one
/// another, those at the ends of rows follow, or the fetches fall behind the reading.
class WholeRows {
 public:
  [[gnu::always_inline]] WholeRows(const Ahead& ahead, bool without_gaps)
      : counts_(without_gaps && ahead && !ahead.side_by_side() && ahead.shift() == 0), due_(ahead.next()) {}
  /// So many cells are read next.
  [[gnu::always_inline]] void Read(int64_t cells, Ahead& ahead) {
    if (counts_) ahead.CatchUp(due_);
    due_ += static_cast<uint64_t>(cells) * sizeof(double);
  }

 private:
  bool counts_;
  uint64_t due_;
};

/// Lines side by side only, for loops that count the cells they read: a line of each of the eight pages at
/// once. That one page after the other has its turn costs as many instructions as adding up.
class EightAhead {
 public:
  [[gnu::always_inline]] explicit EightAhead(const Ahead& ahead) : next_(ahead.next_) {
    // From the first page on; the lines of the pages before count as read.
    const uint64_t page = next_ % Ahead::kBlock / Ahead::kPage;
    next_ -= page * Ahead::kPage;
    due_ = static_cast<int64_t>(page) * 8;
  }
  static constexpr int64_t kCells = 64;
  /// Address in the line of the first page that is next.
  uint64_t next() const { return next_; }
  [[gnu::always_inline]] void Read(int64_t cells) {
    for (due_ += cells; due_ >= kCells; due_ -= kCells) {
#pragma GCC unroll 8
      for (uint64_t page = 0; page < 8; ++page)
        _mm_prefetch(reinterpret_cast<const char*>(next_ + page * Ahead::kPage), _MM_HINT_T1);
      next_ += Ahead::kLine;
      if (__builtin_expect(next_ % Ahead::kPage == 0, 0)) next_ += Ahead::kBlock - Ahead::kPage;
    }
  }

 private:
  uint64_t next_;
  int64_t due_;
};

}  // namespace heddle::ops::simd
