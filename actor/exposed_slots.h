// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "core/programs/plan.h"
#include "core/status.h"
#include "core/values/value.h"

namespace heddle::actor {

/// The filled slots of the run in flight that other ranks may pull. Thread-safe: the thread of a stream fills
/// them, that of a link reads them.
class ExposedSlots {
 public:
  /// From now on slots are those of `run`; the ones before are asked for in vain.
  void Begin(uint32_t run) {
    const std::lock_guard<std::mutex> lock(mutex_);
    run_ = run;
  }
  void Expose(RegisterId register_id, uint8_t slot, const Value& value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_.insert_or_assign(KeyOf(register_id, slot), value);
  }
  void Withdraw(RegisterId register_id, uint8_t slot) {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_.erase(KeyOf(register_id, slot));
  }
  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_.clear();
  }
  /// kCancelled when the slot is not there: of another run, or withdrawn.
  Result<Value> Find(uint32_t run, RegisterId register_id, uint8_t slot) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = values_.find(KeyOf(register_id, slot));
    if (run != run_ || found == values_.end())
      return Cancelled("register {} slot {} of run {} is not published", register_id, slot, run);
    return found->second;
  }
  bool empty() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return values_.empty();
  }

 private:
  static uint64_t KeyOf(RegisterId register_id, uint8_t slot) {
    return uint64_t{static_cast<uint32_t>(register_id)} << 8 | slot;
  }

  mutable std::mutex mutex_;
  uint32_t run_ = 0;
  std::unordered_map<uint64_t, Value> values_;
};

}  // namespace heddle::actor
