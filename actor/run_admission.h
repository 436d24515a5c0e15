// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>

#include "core/memory/memory_budget.h"

namespace heddle::actor {

/// Lets runs of plans begin while the memory that their plans state fits into the budget together, beside
/// what the process held before the first of them; the others wait their turn, in the order in which they
/// came. A run always begins when no other is in flight: then its plan alone is at fault if memory is short.
/// Thread-safe.
class RunAdmission {
 public:
  explicit RunAdmission(const MemoryBudget& budget) : budget_(budget) {}

  /// Waits until a run that may need `bytes` may begin; false, and nothing is taken, once `cancelled` is set.
  bool Enter(int64_t bytes, const std::atomic<bool>& cancelled) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!waiting_.empty() || !Fits(bytes)) {
      const auto place = waiting_.insert(waiting_.end(), bytes);
      changed_.wait(lock, [&] { return cancelled.load() || (place == waiting_.begin() && Fits(bytes)); });
      waiting_.erase(place);
      changed_.notify_all();  // Who is first now may fit, too.
    }
    if (cancelled.load()) return false;
    if (runs_++ == 0) bytes_before_ = budget_.used();
    stated_bytes_ += bytes;
    return true;
  }
  /// A run that entered with `bytes` is over.
  void Leave(int64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    --runs_;
    stated_bytes_ -= bytes;
    if (!waiting_.empty()) changed_.notify_all();
  }
  /// Those who wait look at their flags again.
  void Wake() {
    { const std::lock_guard<std::mutex> lock(mutex_); }
    changed_.notify_all();
  }

 private:
  // What is not of runs: at least what was there before them, and what they cannot hold themselves.
  int64_t OtherBytes() const {
    const int64_t used = budget_.used();
    return runs_ == 0 ? used : std::max(bytes_before_, used - stated_bytes_);
  }
  bool Fits(int64_t bytes) const {
    return runs_ == 0 || stated_bytes_ + bytes <= budget_.limit() - OtherBytes();
  }

  const MemoryBudget& budget_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<int64_t> waiting_;  ///< In the order in which they came.
  int runs_ = 0;                ///< In flight.
  int64_t stated_bytes_ = 0;    ///< Of those.
  int64_t bytes_before_ = 0;
};

}  // namespace heddle::actor
