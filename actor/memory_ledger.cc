// SPDX-License-Identifier: Apache-2.0
#include "actor/memory_ledger.h"

#include <utility>

namespace heddle::actor {
namespace {

// Bytes of the value that its plan must have known: not those that are counted when they are allocated.
int64_t PlannedBytes(const ValueInfo& info, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kScalar: return 0;
    case Value::Kind::kMatrix:
      return value.matrix().IsSparse() || info.format == Format::kSparse ? 0 : value.matrix().bytes();
    case Value::Kind::kPanels: return 0;
    case Value::Kind::kFrame: return FixedBytes(*value.frame().schema(), value.frame().rows());
  }
  HEDDLE_CHECK(false, "values of every kind have a size");
}

}  // namespace

void MemoryLedger::BeginWrite(const Register& description, uint8_t slot) {
  if (description.bytes == 0 || !description.device.IsHost()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!in_use_.try_emplace({description.id, slot}, Use{.bytes = description.bytes}).second) return;
  used_bytes_ += description.bytes;
  if (used_bytes_ > peak_bytes_)
    Broken(Internal("I8: {} bytes in use with register {}, the plan stated {}", used_bytes_, description.id,
                    peak_bytes_));
}

void MemoryLedger::Publish(const Register& description, uint8_t slot, int readers, const Value& value) {
  if (description.bytes == 0 || !description.device.IsHost()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const int64_t bytes = PlannedBytes(description.info, value); bytes > description.bytes)
    Broken(Internal("I8: register {} holds {} bytes, the plan stated {}", description.id, bytes,
                    description.bytes));
  const auto found = in_use_.find({description.id, slot});
  if (found == in_use_.end()) return;
  found->second.readers = readers;
  if (readers == 0) Erase(found->first);
}

void MemoryLedger::EndRead(const Register& description, uint8_t slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = in_use_.find({description.id, slot});
  if (found != in_use_.end() && --found->second.readers == 0) Erase(found->first);
}

void MemoryLedger::Free(const Register& description, uint8_t slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Erase({description.id, slot});
}

void MemoryLedger::Reset() {
  const std::lock_guard<std::mutex> lock(mutex_);
  in_use_.clear();
  used_bytes_ = 0;
  status_ = Status();
}

Status MemoryLedger::status() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

bool MemoryLedger::IsEmpty() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return in_use_.empty();
}

int64_t MemoryLedger::used_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return used_bytes_;
}

void MemoryLedger::Broken(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void MemoryLedger::Erase(SlotId id) {
  const auto found = in_use_.find(id);
  if (found == in_use_.end()) return;
  used_bytes_ -= found->second.bytes;
  in_use_.erase(found);
}

}  // namespace heddle::actor
