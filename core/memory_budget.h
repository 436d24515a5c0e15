// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace heddle {

/// How many bytes of matrices this process may hold. Thread-safe; a charge is a few atomic operations.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit) : limit_(limit) {}
  /// The budget of the process. Its first limit is DefaultMemoryLimit().
  static MemoryBudget& Process();

  int64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  /// What is charged already stays charged, even if it is more than the new limit.
  void SetLimit(int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }

  /// Takes `bytes` (>= 0), or takes nothing and says false when they do not fit.
  bool TryCharge(int64_t bytes);
  void Release(int64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> limit_;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> peak_{0};
};

/// 80 % of the smaller of the machine's memory and the memory limit of this process's control group.
int64_t DefaultMemoryLimit();

}  // namespace heddle
