// SPDX-License-Identifier: Apache-2.0
// The tree over leaves that touch few places of a wide payload: a stack for each place instead of one of
// whole payloads. Leaves that do not touch a place are missing from its tree, which changes nothing
// (docs/numerics.md R2).
#include "ops/parallel.h"
#include "ops/reduction_tasks.h"

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
  int level = 0;
  while ((int64_t{1} << level) < kLeastLeaves || ((end - begin) >> level) > kMostTasks) ++level;
  HEDDLE_ASSIGN_OR_RETURN(ReductionTasks tasks, ReductionTasks::Divide(reduction, begin, end, level));
  ParallelFor(tasks.size(), 1, [&](int64_t first, int64_t last) {
    SparsePayload payload(reduction.width, level);
    for (int64_t t = first; t < last; ++t) {
      const int64_t end_leaf = (tasks[t].index + 1) << tasks[t].level;
      for (int64_t i = tasks[t].FirstLeaf(); i < end_leaf && !IsCancelled(reduction.cancelled); ++i) {
        leaf(i, payload);
        payload.CloseLeaf(i);
      }
      payload.Finish(tasks.Payload(t));
    }
  });
  return tasks.Close();
}

}  // namespace heddle::ops
