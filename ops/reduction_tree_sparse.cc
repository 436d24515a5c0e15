// SPDX-License-Identifier: Apache-2.0
// The tree over leaves that touch few places of a wide payload: a stack for each place instead of one of
// whole payloads. Leaves that do not touch a place are missing from its tree, which changes nothing
// (docs/numerics.md R2).
#include <algorithm>
#include <utility>

#include "core/panels.h"
#include "ops/parallel.h"
#include "ops/reduction_tasks.h"
#include "ops/thread_slots.h"

namespace heddle::ops {
namespace {

// Each thread keeps places for the whole payload, each task a payload, so tasks are few.
constexpr int64_t kTasksOfThread = 4;
constexpr int64_t kLeastLeaves = 8;

}  // namespace

SparsePayload::SparsePayload(int64_t places, int64_t cells_of_place, int max_level)
    : places_(places),
      together_(cells_of_place),
      max_level_(max_level),
      last_(std::make_unique_for_overwrite<double[]>(static_cast<size_t>(places * (1 + cells_of_place)))),
      earlier_(std::make_unique_for_overwrite<double[]>(static_cast<size_t>(places * max_level * cells_of_place))),
      touched_(static_cast<size_t>(CeilDivide(places, 64))) {}

// Of `from` nodes before the last one, the last `joins` become one with it.
void SparsePayload::JoinLast(const double* earlier, double* last, int from, int joins) const {
  for (int i = from - 1; i >= from - joins; --i)
    for (int64_t c = 0; c < together_; ++c) last[1 + c] = earlier[i * together_ + c] + last[1 + c];
}

void SparsePayload::Open(int64_t place, double* last) {
  Head& head = HeadOf(last);
  double* const earlier = Earlier(place);
  const int level = CommonLevel(head.leaf, leaf_);
  const uint32_t below = (uint32_t{1} << level) - 1;
  const int nodes = std::popcount(head.levels), joins = std::popcount(head.levels & below);
  JoinLast(earlier, last, nodes, joins);
  std::copy_n(last + 1, together_, earlier + (nodes - joins) * together_);
  std::fill_n(last + 1, together_, 0.0);
  head = {leaf_, (head.levels & ~below) | uint32_t{1} << level};
}

void SparsePayload::Finish(double* payload) {
  std::fill_n(payload, places_ * together_, 0.0);
  for (size_t i = 0; i < touched_.size(); ++i) {
    for (uint64_t bits = std::exchange(touched_[i], 0); bits != 0; bits &= bits - 1) {
      const int64_t place = static_cast<int64_t>(i) * 64 + std::countr_zero(bits);
      double* const last = Last(place);
      const int nodes = std::popcount(HeadOf(last).levels);
      JoinLast(Earlier(place), last, nodes, nodes);
      std::copy_n(last + 1, together_, payload + place * together_);
    }
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
  const int64_t most_tasks = kTasksOfThread * ParallelThreads();
  int level = 0;
  while ((int64_t{1} << level) < kLeastLeaves || ((end - begin) >> level) > most_tasks) ++level;
  HEDDLE_ASSIGN_OR_RETURN(ReductionTasks tasks, ReductionTasks::Divide(reduction, begin, end, level));
  ThreadSlots<SparsePayload> payloads;
  ParallelFor(tasks.size(), 1, [&](int64_t first, int64_t last) {
    std::unique_ptr<SparsePayload> payload = payloads.Take();
    if (payload == nullptr) payload = std::make_unique<SparsePayload>(reduction.width / cells_of_place, cells_of_place, level);
    for (int64_t t = first; t < last; ++t) {
      const int64_t end_leaf = (tasks[t].index + 1) << tasks[t].level;
      for (int64_t i = tasks[t].FirstLeaf(); i < end_leaf && !IsCancelled(reduction.cancelled); ++i) {
        payload->Begin(i);
        leaf(i, *payload);
      }
      payload->Finish(tasks.Payload(t));
    }
    payloads.GiveBack(std::move(payload));
  });
  return tasks.Close();
}

}  // namespace heddle::ops
