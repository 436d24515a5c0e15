// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/status.h"

namespace heddle::actor {

/// A first-in first-out queue of slot numbers with room for all slots of one register. Never allocates after
/// the constructor. Not thread-safe: belongs to one actor.
class SlotQueue {
 public:
  explicit SlotQueue(int capacity) : ring_(static_cast<size_t>(capacity)) {}

  bool empty() const { return size_ == 0; }
  int size() const { return size_; }
  int capacity() const { return static_cast<int>(ring_.size()); }
  uint8_t front() const { return ring_[static_cast<size_t>(head_)]; }
  /// The i-th oldest slot; for checks and reports.
  uint8_t At(int i) const { return ring_[static_cast<size_t>((head_ + i) % capacity())]; }

  void Push(uint8_t slot) {
    HEDDLE_CHECK(size_ < capacity(), "an edge never holds more slots than its register has (I2)");
    int tail = head_ + size_;
    if (tail >= capacity()) tail -= capacity();
    ring_[static_cast<size_t>(tail)] = slot;
    ++size_;
  }
  uint8_t Pop() {
    HEDDLE_DEBUG_CHECK(size_ > 0, "an actor acts only when its counters say so");
    const uint8_t slot = front();
    if (++head_ == capacity()) head_ = 0;
    --size_;
    return slot;
  }
  void Clear() { head_ = size_ = 0; }

 private:
  std::vector<uint8_t> ring_;
  int head_ = 0;
  int size_ = 0;
};

}  // namespace heddle::actor
