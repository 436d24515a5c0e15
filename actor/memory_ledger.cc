// SPDX-License-Identifier: Apache-2.0
#include "actor/memory_ledger.h"

#include <algorithm>
#include <iterator>
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
  if (!IsPlaced(description)) return;
  const int64_t begin = BeginOf(description, slot);
  const int64_t end = begin + description.bytes;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto next = places_.lower_bound(begin);
  if (next != places_.end() && next->first == begin && next->second.register_id == description.id) return;
  if (end > block_bytes_) {
    Broken(Internal("I8: register {} ends at byte {} of a block of {}", description.id, end, block_bytes_));
  }
  const auto before = next == places_.begin() ? places_.end() : std::prev(next);
  const auto clash = next != places_.end() && next->first < end              ? next
                     : before != places_.end() && before->second.end > begin ? before
                                                                             : places_.end();
  if (clash != places_.end()) {
    return Broken(Internal("I11: register {} is written where register {} is still in use", description.id,
                           clash->second.register_id));
  }
  places_.emplace_hint(next, begin, Place{.end = end, .register_id = description.id});
  used_bytes_ += description.bytes;
  if (used_bytes_ > block_bytes_)
    Broken(Internal("I8: {} bytes in use, the plan stated {}", used_bytes_, block_bytes_));
}

void MemoryLedger::Publish(const Register& description, uint8_t slot, int readers, const Value& value) {
  if (!IsPlaced(description)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const int64_t bytes = PlannedBytes(description.info, value); bytes > description.bytes)
    Broken(Internal("I8: register {} holds {} bytes, the plan stated {}", description.id, bytes,
                    description.bytes));
  const auto found = places_.find(BeginOf(description, slot));
  if (found == places_.end()) return;
  found->second.readers = readers;
  if (readers == 0) Erase(found->first);
}

void MemoryLedger::EndRead(const Register& description, uint8_t slot) {
  if (!IsPlaced(description)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = places_.find(BeginOf(description, slot));
  if (found != places_.end() && --found->second.readers == 0) Erase(found->first);
}

void MemoryLedger::Free(const Register& description, uint8_t slot) {
  if (!IsPlaced(description)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  Erase(BeginOf(description, slot));
}

void MemoryLedger::Reset() {
  const std::lock_guard<std::mutex> lock(mutex_);
  places_.clear();
  used_bytes_ = 0;
  status_ = Status();
}

Status MemoryLedger::status() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

bool MemoryLedger::IsEmpty() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return places_.empty();
}

int64_t MemoryLedger::used_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return used_bytes_;
}

void MemoryLedger::Broken(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void MemoryLedger::Erase(int64_t begin) {
  const auto found = places_.find(begin);
  if (found == places_.end()) return;
  used_bytes_ -= found->second.end - begin;
  places_.erase(found);
}

}  // namespace heddle::actor
