// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "core/values/matrix.h"
#include "core/values/panels.h"
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
      set.AddRows(x, i, i + 1);
      use(i, set);
    }
  });
  return IsCancelled(call.context.cancelled) ? Cancelled("cancelled") : OkStatus();
}

/// The set of all cells: each thread makes one of its own cells, or rows of a CSR matrix. kCancelled when the
/// call is cancelled.
template <typename Set>
Result<Set> SetOfAllCells(const KernelCall& call, const Matrix& x) {
  constexpr int64_t kCellsOfPart = 32768, kCellsBetweenLooks = 1 << 18;
  const int64_t columns = x.IsSparse() ? std::max<int64_t>(x.columns(), 1) : 1;
  const int64_t units = x.IsSparse() ? x.rows() : x.cells();
  const int64_t parts = std::clamp<int64_t>(units * columns / kCellsOfPart, 1, ParallelThreads());
  const int64_t look = std::max<int64_t>(kCellsBetweenLooks / columns, 1);
  std::vector<Set> sets(static_cast<size_t>(parts));
  ParallelFor(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      Set& set = sets[static_cast<size_t>(part)];
      const int64_t end = units * (part + 1) / parts;
      for (int64_t i = units * part / parts; i < end && !IsCancelled(call.context.cancelled); i += look) {
        const int64_t stop = std::min(end, i + look);
        if (x.IsSparse())
          set.AddRows(x, i, stop);
        else
          set.AddCells(x.data() + i, stop - i);
      }
      set.Count();  // Sorts what it has in a list, on this thread.
    }
  });
  for (int64_t step = 1; step < parts; step *= 2)
    ParallelFor(CeilDivide(parts - step, 2 * step), 1, [&](int64_t first, int64_t last) {
      for (int64_t pair = first; pair < last; ++pair) {
        const auto left = static_cast<size_t>(2 * step * pair), right = left + static_cast<size_t>(step);
        sets[left].Join(std::move(sets[right]));
      }
    });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return std::move(sets[0]);
}

}  // namespace heddle::ops
