// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace heddle {

/// The ledger of what this process holds: the blocks of matrices and the buffers of files, which are charged,
/// and the heap (core/memory/counted_heap.h), which counts itself. Thread-safe; a charge is a few atomic
/// operations.
class MemoryBudget {
 public:
  /// Plans, code and the libraries' own tables; heap up to here is not part of what a limit promises.
  static constexpr int64_t kHeapAllowance = int64_t{32} << 20;

  /// `heap`: the bytes of the heap, nullptr when it does not count.
  explicit MemoryBudget(int64_t limit, const std::atomic<int64_t>* heap = nullptr)
      : limit_(limit), heap_(heap) {}
  /// The budget of the process. Its first limit is DefaultMemoryLimit().
  static MemoryBudget& Process();

  int64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  /// What is charged already stays charged, even if it is more than the new limit.
  void SetLimit(int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  int64_t used() const { return charged_.load(std::memory_order_relaxed) + HeapBytes(); }
  /// The most that was charged, without the heap.
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  bool IsOver() const { return used() > limit(); }

  /// Takes `bytes` (>= 0), or takes nothing and says false when they do not fit.
  bool TryCharge(int64_t bytes);
  void Release(int64_t bytes) { charged_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  int64_t HeapBytes() const {
    return heap_ == nullptr ? 0
                            : std::max<int64_t>(0, heap_->load(std::memory_order_relaxed) - kHeapAllowance);
  }

  std::atomic<int64_t> limit_;
  const std::atomic<int64_t>* const heap_;
  std::atomic<int64_t> charged_{0};
  std::atomic<int64_t> peak_{0};
};

}  // namespace heddle
