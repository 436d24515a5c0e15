// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/values/panels.h"
#include "ops/reduction/reduction_tree.h"

namespace heddle::ops::simd {

/// The tree over leaves of eight lanes that come in ascending order, some of them missing: PayloadStack for
/// sums of rows so long that a leaf, a column chunk of one row, has an entry or two.
class LaneTree {
 public:
  /// The lanes of a leaf, +0.0 at first, valid until the next call; the same leaf may be asked for again
  /// before the next one.
  double* Leaf(int64_t leaf) {
    if (depth_ == 0 || leaf != leaf_) Open(leaf);
    return lanes_[depth_ - 1];
  }
  /// Writes the lanes of the root, +0.0 if there was no leaf; then the tree is empty again.
  void Finish(double* lanes) {
    while (depth_ > 1) Join();
    if (depth_ == 0) std::fill_n(lanes_[0], 8, 0.0);
    depth_ = 0;
    std::copy_n(lanes_[0], 8, lanes);
  }

 private:
  void Open(int64_t leaf) {
    const int level = depth_ == 0 ? 0 : CommonLevel(leaf_, leaf);
    // What no later leaf can come between.
    while (depth_ >= 2 && level_[depth_ - 1] < level) Join();
    level_[depth_] = level;
    leaf_ = leaf;
    std::fill_n(lanes_[depth_++], 8, 0.0);
  }
  void Join() {
    --depth_;
    for (int lane = 0; lane < 8; ++lane)
      lanes_[depth_ - 1][lane] = lanes_[depth_ - 1][lane] + lanes_[depth_][lane];
  }

  static constexpr int kMostNodes = 66;
  int depth_ = 0;
  int64_t leaf_ = 0;       // The last one.
  int level_[kMostNodes];  // Of a node with the one before it; falls from node to node.
  alignas(64) double lanes_[kMostNodes][8];
};

/// Leaf i is column chunk i % chunks of row i / chunks: adds the entries of leaves [begin, end). `offsets`
/// are those of row `first_row` and the rows after it, up to row (end - 1) / chunks.
inline void AddLongRows(const int64_t* offsets, const int32_t* columns, const double* values,
                        int64_t first_row, int64_t chunks, int64_t begin, int64_t end, LaneTree& tree) {
  // Where the entries of a row come to one of its leaves.
  const auto from = [&](int64_t leaf) {
    const int64_t row = leaf / chunks - first_row;
    return std::lower_bound(columns + offsets[row], columns + offsets[row + 1],
                            leaf % chunks * kColumnChunk) -
           columns;
  };
  for (int64_t row = begin / chunks; row * chunks < end; ++row) {
    const int64_t row_leaf = row * chunks;
    const int64_t first = begin > row_leaf ? from(begin) : offsets[row - first_row];
    const int64_t last = end < row_leaf + chunks ? from(end) : offsets[row - first_row + 1];
    for (int64_t e = first; e < last; ++e)
      tree.Leaf(row_leaf + columns[e] / kColumnChunk)[columns[e] & 7] += values[e];
  }
}

}  // namespace heddle::ops::simd
