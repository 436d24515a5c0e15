// SPDX-License-Identifier: Apache-2.0
#include "core/memory/counted_heap.h"

#include <utility>

#include "core/memory/block_pool.h"
#include "core/memory/heap_counters.h"
#include "core/memory/heap_of_process.h"
#include "core/memory/heap_of_thread.h"
#include "core/memory/memory_budget.h"

namespace heddle {

bool HeapIsCounted() { return heap::is_counted; }
std::atomic<int64_t>& HeapBytes() { return heap::bytes; }
int64_t HeapAllocations() { return heap::own_allocations; }
void ShareHeapCount() { heap::bytes.fetch_add(std::exchange(heap::own_bytes, 0), std::memory_order_relaxed); }
HeapMode CurrentHeapMode() { return heap::mode; }

HeapModeScope::HeapModeScope(HeapMode wanted) : before_(heap::mode) {
  if (wanted == HeapMode::kRefuses) MemoryBudget::Process();  // There before it is asked.
  heap::mode = wanted;
}
HeapModeScope::~HeapModeScope() { heap::mode = before_; }

Status HeapRefused(std::string_view user, bool is_absurd) {
  std::string size = is_absurd ? "more bytes than there are addresses" : "more bytes than the machine has";
  if (!is_absurd && heap::refused_bytes > 0) size = fmt::format("{} bytes", heap::refused_bytes.load());
  return DoesNotFit(fmt::format("working memory of {} for '{}'", size, user), heap::used_when_refused.load(),
                    MemoryBudget::Process());
}

Status LeftByException(std::string_view user, const std::exception& error) {
  return Internal("'{}' was left by an exception: {}", user, error.what())
      .WithNote("this is a bug of Heddle");
}

void NoteRefused(int64_t bytes) {
  heap::refused_bytes.store(static_cast<size_t>(bytes), std::memory_order_relaxed);
  heap::used_when_refused.store(MemoryBudget::Process().used(), std::memory_order_relaxed);
}

void BoundHeapOfProcess(int64_t bytes) {
  heap::refused_bytes = 0;
  heap::bound_of_process = heap::bytes.load(std::memory_order_relaxed) + bytes;
}
void MoveBoundOfProcess(int64_t bytes) {
  if (heap::bound_of_process != heap::kNoBound) heap::bound_of_process += bytes;
}
int64_t RoomInBoundOfProcess() {
  if (!HeapIsCounted() || heap::bound_of_process == heap::kNoBound) return heap::kNoBound;
  return heap::bound_of_process - heap::bytes.load(std::memory_order_relaxed);
}
int64_t RefusedToProcess() {
  return heap::bound_of_process == heap::kNoBound ? 0 : static_cast<int64_t>(heap::refused_bytes.load());
}

}  // namespace heddle
