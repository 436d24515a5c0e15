// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/values/panels.h"
#include "ops/base/cpu.h"
#include "ops/simd/product/gemm.h"

// What the tiles of a product prefetch while they compute: each tile takes the next part of it.
namespace heddle::ops {

/// The next strip of B, which is in the third-level cache: `part` cells for each tile.
template <typename Cell>
class NextStrip {
 public:
  NextStrip() = default;
  NextStrip(const Cell* cells, int64_t count, int64_t part) : cells_(cells), count_(count), part_(part) {}

  void Give(GemmFetches<Cell>* fetches) {
    if (count_ <= 0) return;
    fetches->strip = cells_;
    fetches->strip_cells = std::min(part_, count_);
    cells_ += part_;
    count_ -= part_;
  }

 private:
  const Cell* cells_ = nullptr;
  int64_t count_ = 0, part_ = 0;
};

/// Prefetches `lines` cache lines each time that a tile has done as many inner indexes as a line has cells:
/// of rows `apart` cells apart, or, if that is 0, in the order of memory.
template <typename Cell>
void FetchMemory(const Cell* cells, int64_t lines, int64_t apart, GemmFetches<Cell>* fetches) {
  constexpr int64_t kLine = GemmFetches<Cell>::kLine;
  fetches->memory = cells;
  fetches->memory_lines = lines;
  fetches->memory_line = apart > 0 ? apart : kLine;
  fetches->memory_step = apart > 0 ? kLine : kLine * lines;
}

/// `count` cells in memory that are read next, shared out over so many tiles. They are prefetched in the
/// order of memory, or, where the processor follows a stream in each page (MemoryStreams), from places as far
/// apart as possible.
template <typename Cell>
class NextMemory {
 public:
  NextMemory() = default;
  NextMemory(const Cell* cells, int64_t count, int64_t depth, int64_t tiles)
      : cells_(cells), lines_(CeilDivide(count, depth * tiles)) {
    if (lines_ == 0) return;
    apart_ = MemoryStreams() > 1 ? CeilDivide(count, lines_) : 0;
    of_tile_ = apart_ > 0 ? depth : lines_ * depth;
    left_ = apart_ > 0 ? apart_ : count;
  }
  bool done() const { return left_ <= 0; }

  void Give(GemmFetches<Cell>* fetches) {
    if (done()) return;
    FetchMemory(cells_, lines_, apart_, fetches);
    cells_ += of_tile_;
    left_ -= of_tile_;
  }

 private:
  const Cell* cells_ = nullptr;
  int64_t lines_ = 0, apart_ = 0, of_tile_ = 0, left_ = 0;
};

}  // namespace heddle::ops
