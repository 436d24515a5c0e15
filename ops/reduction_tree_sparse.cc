// SPDX-License-Identifier: Apache-2.0
// The tree over leaves that touch few places of a wide payload: a stack for each place instead of one of
// whole payloads. Leaves that do not touch a place are missing from its tree, which changes nothing
// (docs/numerics.md R2).
#include <algorithm>
#include <utility>

#include "ops/parallel.h"
#include "ops/reduction_tasks.h"
#include "ops/thread_slots.h"

namespace heddle::ops {
namespace {

// Each task keeps arrays as wide as the payload, so tasks are few.
constexpr int64_t kMostTasks = 16;
constexpr int64_t kLeastLeaves = 16;

void AddTo(double* left, const double* right, int64_t count) {
  for (int64_t c = 0; c < count; ++c) left[c] = left[c] + right[c];
}

}  // namespace

SparsePayload::SparsePayload(int64_t places, int64_t cells_of_place, int max_level)
    : together_(cells_of_place),
      cells_(static_cast<size_t>(places * cells_of_place)),
      touched_(static_cast<size_t>(places)),
      stacks_(static_cast<size_t>(max_level) + 2),
      depth_(static_cast<size_t>(places)) {}

void SparsePayload::CloseLeaf(int64_t leaf) {
  for (const int64_t place : places_) {
    const auto i = static_cast<size_t>(place);
    const int64_t begin = place * together_;
    size_t depth = depth_[i];
    while (depth >= 2 && CommonLevel(stacks_[depth - 2].leaves[i], stacks_[depth - 1].leaves[i]) <
                             CommonLevel(stacks_[depth - 1].leaves[i], leaf)) {
      AddTo(stacks_[depth - 2].values.get() + begin, stacks_[depth - 1].values.get() + begin, together_);
      --depth;
    }
    Depth& top = stacks_[depth];
    if (top.values == nullptr) {
      top.values = std::make_unique_for_overwrite<double[]>(cells_.size());
      top.leaves = std::make_unique_for_overwrite<int64_t[]>(depth_.size());
    }
    double *const cells = cells_.data() + begin, *const values = top.values.get() + begin;
    for (int64_t c = 0; c < together_; ++c) values[c] = std::exchange(cells[c], 0.0);
    top.leaves[i] = leaf;
    depth_[i] = static_cast<uint8_t>(depth + 1);
    touched_[i] = 0;
  }
  places_.clear();
}

void SparsePayload::Finish(double* payload) {
  for (size_t i = 0; i < depth_.size(); ++i, payload += together_) {
    const int64_t begin = static_cast<int64_t>(i) * together_;
    size_t depth = depth_[i];
    if (depth == 0) {
      std::fill_n(payload, together_, 0.0);
      continue;
    }
    for (; depth > 1; --depth) AddTo(stacks_[depth - 2].values.get() + begin, stacks_[depth - 1].values.get() + begin, together_);
    std::copy_n(stacks_[0].values.get() + begin, together_, payload);
    depth_[i] = 0;
  }
}

void SeparateCells(Matrix* nodes, int64_t offset, int64_t places, int64_t count) {
  if (count == 1) return;
  AlignedArray together(places * count);
  for (int64_t i = 0; i < nodes->rows(); ++i) {
    double* cells = nodes->mutable_data() + i * nodes->columns() + 2 + offset;
    std::copy_n(cells, places * count, together.data());
    for (int64_t c = 0; c < count; ++c)
      for (int64_t j = 0; j < places; ++j) cells[c * places + j] = together[j * count + c];
  }
}

Result<Matrix> ReduceSparseLeaves(const Reduction& reduction, int64_t cells_of_place, int64_t begin, int64_t end,
                                  const SparseLeafFunction& leaf) {
  HEDDLE_CHECK(reduction.join == Join::kSum, "only sums may skip places");
  int level = 0;
  while ((int64_t{1} << level) < kLeastLeaves || ((end - begin) >> level) > kMostTasks) ++level;
  HEDDLE_ASSIGN_OR_RETURN(ReductionTasks tasks, ReductionTasks::Divide(reduction, begin, end, level));
  ThreadSlots<SparsePayload> payloads;
  ParallelFor(tasks.size(), 1, [&](int64_t first, int64_t last) {
    std::unique_ptr<SparsePayload> payload = payloads.Take();
    if (payload == nullptr) payload = std::make_unique<SparsePayload>(reduction.width / cells_of_place, cells_of_place, level);
    for (int64_t t = first; t < last; ++t) {
      const int64_t end_leaf = (tasks[t].index + 1) << tasks[t].level;
      for (int64_t i = tasks[t].FirstLeaf(); i < end_leaf && !IsCancelled(reduction.cancelled); ++i) {
        leaf(i, *payload);
        payload->CloseLeaf(i);
      }
      payload->Finish(tasks.Payload(t));
    }
    payloads.GiveBack(std::move(payload));
  });
  return tasks.Close();
}

}  // namespace heddle::ops
