// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The heap of a process that was forked to call a library on bytes of strangers. It has one thread, and a
// bound of its own: the budget that it inherits is the parent's, and blocks of the pool, which could make
// room there, are behind locks that a thread of the parent may have held when the process began.
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
