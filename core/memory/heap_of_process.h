// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The heap of a process that calls a library on bytes of strangers (heddle-array-process). It has one thread,
// no pool of blocks, and a bound in place of a budget: what the budget of its parent is charged for it.
namespace heddle {

/// From now on allocations under HeapMode::kRefuses fail once this process has taken `bytes` more than it
/// has now. Without effect where the heap is not counted.
void BoundHeapOfProcess(int64_t bytes);
/// Raises the bound by `bytes`, or lowers it where they are negative.
void MoveBoundOfProcess(int64_t bytes);
/// What the bound still leaves; the largest number where there is none.
int64_t RoomInBoundOfProcess();
/// The bytes of the allocation that was refused last since the bound was set; 0: none was.
int64_t RefusedToProcess();

}  // namespace heddle
