// SPDX-License-Identifier: Apache-2.0
#include "actor/register_state.h"

#include <utility>

#include "actor/protocol.h"

namespace heddle::actor {

RegisterState::RegisterState(const Register& description, std::vector<Reader> readers,
                             bool has_remote_readers, MemoryLedger* ledger)
    : description_(&description),
      readers_(std::move(readers)),
      has_remote_readers_(has_remote_readers),
      ledger_(ledger),
      slots_(static_cast<size_t>(description.slots)),
      free_(description.slots) {
  Reset();
}

uint8_t RegisterState::Publish(Value value) {
  const uint8_t index = free_.Pop();
  Slot& slot = slots_[index];
  HEDDLE_DEBUG_CHECK(slot.references == 0, "a slot is written only while nobody reads it (I4)");
  ++published_;
  if constexpr (kMemoryIsChecked)
    if (ledger_ != nullptr) ledger_->Publish(*description_, index, static_cast<int>(readers_.size()), value);
  if (readers_.empty()) {
    free_.Push(index);
    return index;
  }
  slot.value = std::move(value);
  slot.references = static_cast<int32_t>(readers_.size());
  outstanding_ += slot.references;
  return index;
}

bool RegisterState::Release(uint8_t index) {
  Slot& slot = slots_[index];
  HEDDLE_CHECK(slot.references > 0, "every ACK answers a READY (I1)");
  --outstanding_;
  if (!IsLastReader(--slot.references)) return false;
  slot.value = Value();
  free_.Push(index);
  if constexpr (kMemoryIsChecked)
    if (ledger_ != nullptr && has_remote_readers_) ledger_->Free(*description_, index);
  return true;
}

void RegisterState::Reset() {
  free_.Clear();
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].references != 0) slots_[i] = Slot();
    free_.Push(static_cast<uint8_t>(i));
  }
  outstanding_ = 0;
  published_ = 0;
}

Status RegisterState::CheckInvariants() const {
  const int id = description_->id;
  int64_t sum = 0;
  int used = 0;
  for (const Slot& slot : slots_) {
    if (slot.references < 0 || slot.references > static_cast<int32_t>(readers_.size())) {
      return Internal("I1: register {}: {} references with {} readers", id, slot.references, readers_.size());
    }
    sum += slot.references;
    used += slot.references != 0;
  }
  if (sum != outstanding_)
    return Internal("I3: register {}: references sum to {}, outstanding {}", id, sum, outstanding_);
  if (used + free_.size() != static_cast<int>(slots_.size())) {
    return Internal("I1: register {}: {} slots in use and {} free of {}", id, used, free_.size(),
                    slots_.size());
  }
  for (int i = 0; i < free_.size(); ++i) {
    if (slots_[free_.At(i)].references != 0)
      return Internal("I1: register {}: slot {} is free and read", id, free_.At(i));
  }
  return OkStatus();
}

}  // namespace heddle::actor
