// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace heddle {

/// Adds what the calling thread alone has counted of the heap (core/memory/counted_heap.h) to HeapBytes().
/// The last act of a thread that is one of many: what it has kept for itself is else never seen, up to 64 KiB
/// of each.
void ShareHeapCount();

}  // namespace heddle
