// SPDX-License-Identifier: Apache-2.0
// The tree over leaves that touch few places of a wide payload: a stack for each place instead of one of
// whole payloads. Leaves that do not touch a place are missing from its tree, which changes nothing
// (docs/numerics.md R2).
#include <algorithm>

#include "ops/parallel.h"
#include "ops/reduction_tree.h"

namespace heddle::ops {
namespace {

// Each task keeps arrays as wide as the payload, so tasks are few.
constexpr int64_t kMostTasks = 16;
constexpr int64_t kLeastLeaves = 16;

}  // namespace

SparsePayload::SparsePayload(int64_t width, int max_level)
    : cells_(static_cast<size_t>(width)),
      touched_(static_cast<size_t>(width)),
      stacks_(static_cast<size_t>(max_level) + 2),
      depth_(static_cast<size_t>(width)) {}

void SparsePayload::CloseLeaf(int64_t leaf) {
  for (const int64_t place : places_) {
    const auto i = static_cast<size_t>(place);
    size_t depth = depth_[i];
    while (depth >= 2 && CommonLevel(stacks_[depth - 2].leaves[i], stacks_[depth - 1].leaves[i]) <
                             CommonLevel(stacks_[depth - 1].leaves[i], leaf)) {
      stacks_[depth - 2].values[i] = stacks_[depth - 2].values[i] + stacks_[depth - 1].values[i];
      --depth;
    }
    Depth& top = stacks_[depth];
    if (top.values == nullptr) {
      top.values = std::make_unique_for_overwrite<double[]>(cells_.size());
      top.leaves = std::make_unique_for_overwrite<int64_t[]>(cells_.size());
    }
    top.values[i] = cells_[i];
    top.leaves[i] = leaf;
    depth_[i] = static_cast<uint8_t>(depth + 1);
    cells_[i] = 0.0;
    touched_[i] = 0;
  }
  places_.clear();
}

void SparsePayload::Finish(double* payload) {
  for (size_t i = 0; i < cells_.size(); ++i) {
    size_t depth = depth_[i];
    double sum = depth == 0 ? 0.0 : stacks_[depth - 1].values[i];
    for (; depth > 1; --depth) sum = stacks_[depth - 2].values[i] + sum;
    payload[i] = sum;
    depth_[i] = 0;
  }
}

Result<Matrix> ReduceSparseLeaves(const Reduction& reduction, int64_t begin, int64_t end,
                                  const SparseLeafFunction& leaf) {
  HEDDLE_CHECK(reduction.join == Join::kSum, "only sums may skip places");
  const std::vector<TreeNode> nodes = CoveringNodes(begin, end);
  const int64_t width = reduction.width;
  HEDDLE_ASSIGN_OR_RETURN(Matrix partial, PartialMatrix(nodes, width));
  int level = 0;
  while ((int64_t{1} << level) < kLeastLeaves || ((end - begin) >> level) > kMostTasks) ++level;
  std::vector<TreeNode> tasks;
  for (const TreeNode& node : nodes) {
    const int down = std::max(0, node.level - level);
    for (int64_t i = 0; i < (int64_t{1} << down); ++i)
      tasks.push_back({(node.index << down) + i, node.level - down});
  }
  AlignedArray payloads(static_cast<int64_t>(tasks.size()) * width);
  ParallelFor(static_cast<int64_t>(tasks.size()), 1, [&](int64_t first, int64_t last) {
    SparsePayload payload(width, level);
    for (int64_t t = first; t < last; ++t) {
      const TreeNode& task = tasks[static_cast<size_t>(t)];
      for (int64_t i = task.FirstLeaf();
           i < (task.index + 1) << task.level && !IsCancelled(reduction.cancelled); ++i) {
        leaf(i, payload);
        payload.CloseLeaf(i);
      }
      payload.Finish(payloads.data() + t * width);
    }
  });
  if (IsCancelled(reduction.cancelled)) return Cancelled("cancelled");

  double* piece = payloads.data();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int64_t pieces = int64_t{1} << std::max(0, nodes[i].level - level);
    for (int64_t step = 1; step < pieces; step *= 2)
      for (int64_t p = 0; p + step < pieces; p += 2 * step)
        JoinPayloads(Join::kSum, piece + p * width, piece + (p + step) * width, width);
    std::copy_n(piece, width, partial.mutable_data() + static_cast<int64_t>(i) * (2 + width) + 2);
    piece += pieces * width;
  }
  return partial;
}

}  // namespace heddle::ops
