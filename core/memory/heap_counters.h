// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/memory/counted_heap.h"

// What the counted heap knows. The library reads it (core/memory/counted_heap.cc); the allocator that only
// executables link with writes it (core/memory/main/counted_malloc.cc). Variables are inline, so that each
// access in malloc is one instruction.
namespace heddle::heap {

inline constexpr int64_t kNoBound = INT64_MAX;

inline constinit std::atomic<int64_t> bytes{0};  // Bytes of the heap in use, as threads have shared them.
inline constinit thread_local int64_t own_bytes = 0;        // Of this thread, not yet in `bytes`.
inline constinit thread_local int64_t own_allocations = 0;  // Of this thread, for ever.
inline constinit thread_local HeapMode mode = HeapMode::kCounts;
inline constinit bool is_counted = false;  // Whether the allocator is part of this program.

// Of the last refusal by any thread: a kernel's threads fail for one another. What was in use beside it is
// noted then, because the failing kernel gives much of it back before the error is told.
inline constinit std::atomic<size_t> refused_bytes{0};
inline constinit std::atomic<int64_t> used_when_refused{0};

// Of a process that reads one file of strangers (core/memory/heap_of_process.h): the most that its heap may
// count.
inline constinit int64_t bound_of_process = kNoBound;

#ifdef HEDDLE_FAILING_HEAP
// Of tests/faults, whose heap alone is compiled with it: allocations that may be refused, and which of them
// is (counted from 1; 0: none).
inline constinit std::atomic<int64_t> refusable_asked{0};
inline constinit std::atomic<int64_t> refused_at{0};
#endif

}  // namespace heddle::heap
