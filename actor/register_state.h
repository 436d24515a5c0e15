// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "actor/memory_ledger.h"
#include "actor/slot_queue.h"
#include "core/programs/plan.h"
#include "core/values/value.h"

namespace heddle::actor {

/// Who reads a register, as its producer addresses them.
struct Reader {
  TaskId task;
  uint16_t port = 0;  ///< Position of the register among the reader's edges.
};

/// One register while a plan runs: its slots and their reference counts (runtime reference 2.2).
///
/// Only the producer's thread changes it (EndRead changes the ledger alone). A reader may look at a slot's
/// value from its READY until it sends ACK; the queues between threads order these accesses, so nothing here
/// needs a lock.
class RegisterState {
 public:
  /// `ledger` is told of every use of memory in debug builds; nullptr: nobody is. It outlives the register.
  RegisterState(const Register& description, std::vector<Reader> readers, bool has_remote_readers,
                MemoryLedger* ledger = nullptr);

  const Register& description() const { return *description_; }
  const std::vector<Reader>& readers() const { return readers_; }
  bool has_remote_readers() const { return has_remote_readers_; }
  const Value& value(uint8_t slot) const { return slots_[slot].value; }

  bool HasFreeSlot() const { return !free_.empty(); }
  int64_t outstanding() const { return outstanding_; }  ///< Sum of the reference counts of all slots.
  /// Slots filled in this run: the sequence number of the next READY.
  uint32_t published() const { return published_; }

  bool IsRead(uint8_t slot) const { return slot < slots_.size() && slots_[slot].references > 0; }

  /// The slot that Publish will take is being written from now on (I4, I8). Needs a free slot.
  void BeginWrite() {
    HEDDLE_DEBUG_CHECK(HasFreeSlot(), "a slot is written only while nobody reads it (I4)");
    if constexpr (kMemoryIsChecked)
      if (ledger_ != nullptr) ledger_->BeginWrite(*description_, free_.front());
  }
  /// Said by a reader on this rank, on its own thread, before it sends ACK.
  void EndRead([[maybe_unused]] uint8_t slot) {
    if constexpr (kMemoryIsChecked)
      if (ledger_ != nullptr && !has_remote_readers_) ledger_->EndRead(*description_, slot);
  }
  /// Takes a free slot, fills it and gives it one reference per reader. With no reader the slot is free again
  /// at once.
  uint8_t Publish(Value value);
  /// A reader is through with `slot`. True if it was the last one: the value is dropped and the slot is free
  /// again.
  bool Release(uint8_t slot);
  /// All slots free and empty, as before a run.
  void Reset();

  /// I1, I3: counts in range, free slots are exactly those without references, the sum agrees.
  Status CheckInvariants() const;

 private:
  friend class ActorSnapshot;  // tests/models
  struct Slot {
    Value value;
    int32_t references = 0;
  };
  const Register* description_;
  std::vector<Reader> readers_;
  bool has_remote_readers_;
  MemoryLedger* ledger_;
  std::vector<Slot> slots_;
  SlotQueue free_;
  int64_t outstanding_ = 0;
  uint32_t published_ = 0;
};

}  // namespace heddle::actor
