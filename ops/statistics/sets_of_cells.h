// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <mutex>

#include "core/values/matrix.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/cells/move_cells.h"

// Sets of the cells of a matrix, on all threads of the arena. `Set` is DistinctValues or SmallestHashes.
namespace heddle::ops {

/// Calls use(i, set) with the set of each row, in any order. kCancelled when the call is cancelled.
template <typename Set, typename Use>
Status ForSetOfEachRow(const KernelCall& call, const Matrix& x, const Use& use) {
  ParallelFor(x.rows(), RowGrain(x.columns()), [&](int64_t begin, int64_t end) {
    Set set;
    for (int64_t i = begin; i < end && !IsCancelled(call.context.cancelled); ++i) {
      set.Clear();
      set.AddRow(x, i);
      use(i, set);
    }
  });
  return IsCancelled(call.context.cancelled) ? Cancelled("cancelled") : OkStatus();
}

/// The set of all cells: each thread makes one of its own rows.
template <typename Set>
Result<Set> SetOfAllCells(const KernelCall& call, const Matrix& x) {
  Set all;
  std::mutex mutex;
  const int64_t parts = std::max<int64_t>(1, std::min<int64_t>(ParallelThreads(), x.rows()));
  const int64_t grain = std::max(RowGrain(x.columns()), (x.rows() + parts - 1) / parts);
  ParallelFor(x.rows(), grain, [&](int64_t begin, int64_t end) {
    Set some;
    for (int64_t i = begin; i < end && !IsCancelled(call.context.cancelled); ++i) some.AddRow(x, i);
    const std::lock_guard lock(mutex);
    for (const double element : some.Elements()) all.Add(element);
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return all;
}

}  // namespace heddle::ops
