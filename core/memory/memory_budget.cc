// SPDX-License-Identifier: Apache-2.0
#include "core/memory/memory_budget.h"

#include "core/memory/counted_heap.h"
#include "core/memory/memory_bounds.h"

namespace heddle {

MemoryBudget& MemoryBudget::Process() {
  static MemoryBudget* budget = new MemoryBudget(DefaultMemoryLimit(), &heddle::HeapBytes());
  return *budget;
}

bool MemoryBudget::TryCharge(int64_t bytes) {
  int64_t charged = charged_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit() - HeapBytes() - charged) return false;
  } while (!charged_.compare_exchange_weak(charged, charged + bytes, std::memory_order_relaxed));
  const int64_t now = charged + bytes;
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return true;
}

}  // namespace heddle
