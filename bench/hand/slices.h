// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/base/parallel.h"

namespace heddle::bench {

/// A range cut into contiguous slices at multiples of `grain`: enough of them to balance two uneven threads.
class Slices {
 public:
  Slices(int64_t count, int64_t grain)
      : count_(count), grain_(grain), slices_(std::clamp<int64_t>(count / grain / 16, 1, kMost)) {}
  int64_t size() const { return slices_; }
  /// Calls body(slice, begin, end) for every slice on the threads of the arena.
  template <typename Body>
  void Each(Body body) const {
    ops::ParallelFor(slices_, 1, [&](int64_t first, int64_t last) {
      for (int64_t s = first; s < last; ++s) body(s, Cut(s), Cut(s + 1));
    });
  }

 private:
  static constexpr int64_t kMost = 32;
  int64_t Cut(int64_t s) const {
    const int64_t grains = (count_ + grain_ - 1) / grain_;
    return std::min(count_, grains * s / slices_ * grain_);
  }
  int64_t count_, grain_, slices_;
};

/// A row of sums for each slice, aligned and padded to whole cache lines.
class SliceSums {
 public:
  SliceSums(int64_t slices, int64_t width)
      : width_(width), lines_((width + 7) / 8), cells_(static_cast<size_t>(slices * lines_)) {}
  double* Of(int64_t slice) { return cells_[static_cast<size_t>(slice * lines_)].cells; }
  void AddUp(double* out) {
    std::fill_n(out, width_, 0.0);
    for (size_t line = 0; line < cells_.size(); line += static_cast<size_t>(lines_))
      for (int64_t j = 0; j < width_; ++j) out[j] += cells_[line + static_cast<size_t>(j / 8)].cells[j % 8];
  }

 private:
  struct alignas(64) Line {
    double cells[8] = {};
  };
  int64_t width_, lines_;
  std::vector<Line> cells_;
};

}  // namespace heddle::bench
