// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

namespace heddle::ops {

/// Threads seen so far by this process, counted as they first ask: a small number for the calling one.
size_t ThreadNumber();

/// Things that threads take and give back often: each finds the one it gave back last, without waiting for
/// others. Two threads may share a slot, so a thing that was given back may be gone.
template <typename Thing>
class ThreadSlots {
 public:
  ThreadSlots() = default;
  ThreadSlots(const ThreadSlots&) = delete;
  ThreadSlots& operator=(const ThreadSlots&) = delete;
  ~ThreadSlots() {
    for (Slot& slot : slots_) delete slot.thing.load(std::memory_order_relaxed);
  }

  /// nullptr when there is none.
  std::unique_ptr<Thing> Take() {
    return std::unique_ptr<Thing>(Mine().exchange(nullptr, std::memory_order_acquire));
  }
  void GiveBack(std::unique_ptr<Thing> thing) {
    delete Mine().exchange(thing.release(), std::memory_order_acq_rel);
  }

 private:
  struct alignas(64) Slot {
    std::atomic<Thing*> thing = nullptr;
  };
  std::atomic<Thing*>& Mine() { return slots_[ThreadNumber() % slots_.size()].thing; }
  std::array<Slot, 128> slots_;
};

}  // namespace heddle::ops
