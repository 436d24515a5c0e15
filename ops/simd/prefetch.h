// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>
#include <stdint.h>

// No header of the library: files that are compiled for AVX-512 include this one.
namespace heddle::ops {
int MemoryStreams();  // ops/base/cpu.h
}

namespace heddle::ops::simd {

/// Which cache lines a loop prefetches: for each line that it reads, one that this loop or the next one over
/// the same rows reads soon. Prefetched lines go to the second-level cache, which can wait for many more
/// lines at a time than the first level.
///
/// Usually that is the line `distance` cells behind the one that is read. Where the processor's own
/// prefetcher follows a stream in each page (MemoryStreams), it is a line of the next block of eight pages,
/// whose pages take turns. Which line follows from the address alone, so a loop may read in pieces of any
/// size, and another loop may continue anywhere.
class Prefetch {
 public:
  /// Cells from what a loop over rows in memory reads to what it prefetches.
  static constexpr int64_t kFar = 3072;

  /// Prefetches nothing.
  Prefetch() = default;
  explicit Prefetch(int64_t distance, int streams = MemoryStreams())
      : distance_(distance), first_(0), step_(1), blocks_(streams == 1 ? 0 : BlocksOf(distance)) {}
  /// For loops that memory limits and that read all cells once, in their order: the processor's own
  /// prefetcher is fast enough with them, unless it follows pages.
  static Prefetch OfStream(int streams = MemoryStreams()) {
    return streams == 1 ? Prefetch() : Prefetch(kFar, streams);
  }
  /// For products of rows in memory with so many vectors.
  static Prefetch OfProduct(int64_t vectors) { return vectors == 1 ? OfStream() : Prefetch(kFar); }

  /// For two loops over the same rows: each prefetches for every second line, so that memory works during
  /// both.
  Prefetch Even() const { return Half(0); }
  Prefetch Odd() const { return Half(1); }
  /// The same at a distance of at least so many cells: for loops that pass over so many cells several times.
  Prefetch Beyond(int64_t cells) const {
    Prefetch beyond = *this;
    if (cells > distance_) beyond.distance_ = cells;
    if (blocks_ > 0) beyond.blocks_ = BlocksOf(beyond.distance_);
    return beyond;
  }

  // Inlined by force: loops compiled for AVX-512 use them, too.
  [[gnu::always_inline]] explicit operator bool() const { return step_ > 0; }
  /// Prefetches for `lines` lines at x, x + apart, ... (Even and Odd: for every second one), and for kBeside
  /// lines from each of these on.
  template <int kBeside = 1>
  [[gnu::always_inline]] void Fetch(const double* x, int64_t apart, int64_t lines) const {
    const auto each = [&](const auto& line_of) __attribute__((always_inline)) {
      for (int64_t k = first_; k < lines; k += step_)
#pragma GCC unroll 6
        for (int b = 0; b < kBeside; ++b)
          _mm_prefetch(reinterpret_cast<const char*>(line_of(x + k * apart + 8 * b)), _MM_HINT_T1);
    };
    if (blocks_ == 0)
      each([&](const double* read) __attribute__((always_inline)) { return read + distance_; });
    else
      each([&](const double* read) __attribute__((always_inline)) { return InTurn(read); });
  }
  /// Prefetches for line number `number` of a loop over rows of floats.
  [[gnu::always_inline]] void FetchLine(const float* x, int64_t number) const {
    if (step_ > 0 && number % step_ == first_)
      _mm_prefetch(reinterpret_cast<const char*>(Of(reinterpret_cast<const double*>(x))), _MM_HINT_T1);
  }
  /// The line that is prefetched for the one at `read`.
  [[gnu::always_inline]] const double* Of(const double* read) const {
    return blocks_ == 0 ? read + distance_ : InTurn(read);
  }

 private:
  [[gnu::always_inline]] const double* InTurn(const double* read) const {
    const uint64_t cell = reinterpret_cast<uint64_t>(read) / sizeof(double), line = cell % kBlock / 8;
    const uint64_t turn = line % 8 * kPage + line / 8 * 8;
    return reinterpret_cast<const double*>((cell / kBlock * kBlock + blocks_ * kBlock + turn) *
                                           sizeof(double));
  }
  static uint64_t BlocksOf(int64_t cells) { return (static_cast<uint64_t>(cells) + kBlock - 1) / kBlock; }
  Prefetch Half(int64_t first) const {
    Prefetch half = *this;
    if (*this) half.first_ = first, half.step_ = 2;
    return half;
  }
  static constexpr uint64_t kPage = 512, kBlock = 8 * kPage;  // In cells.
  int64_t distance_ = 0;
  int64_t first_ = INT64_MAX;
  int64_t step_ = 0;
  uint64_t blocks_ = 0;  // Where pages take turns: the distance in blocks.
};

}  // namespace heddle::ops::simd
