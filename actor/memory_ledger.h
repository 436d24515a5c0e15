// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "core/programs/plan.h"
#include "core/values/value.h"

namespace heddle::actor {

/// Debug builds keep a ledger of the memory that a run uses, see MemoryLedger.
#ifdef NDEBUG
inline constexpr bool kMemoryIsChecked = false;
#else
inline constexpr bool kMemoryIsChecked = true;
#endif

/// Checks that the slots of one rank that are in use at one time take no more than the plan stated (I8).
/// Matrix memory itself comes from the process's pool, so it is the plan's promise that is checked here.
///
/// A slot is in use from the moment its producer begins to write it until its last reader on this rank says
/// that it is through (not until that ACK arrives: nobody looks at the memory on the way). Thread-safe.
class MemoryLedger {
 public:
  explicit MemoryLedger(int64_t peak_bytes) : peak_bytes_(peak_bytes) {}

  /// The producer begins to fill the slot; again for the same slot changes nothing.
  void BeginWrite(const Register& description, uint8_t slot);
  /// The slot is filled: `readers` of them will say EndRead.
  void Publish(const Register& description, uint8_t slot, int readers, const Value& value);
  void EndRead(const Register& description, uint8_t slot);
  /// The slot is free, whoever has not said so.
  void Free(const Register& description, uint8_t slot);
  /// As before a run.
  void Reset();

  /// The first breach since Reset, kInternal.
  Status status() const;
  /// No slot is in use (I12).
  bool IsEmpty() const;
  int64_t used_bytes() const;

 private:
  using SlotId = std::pair<RegisterId, uint8_t>;
  struct Use {
    int64_t bytes = 0;
    int readers = 0;
  };
  void Broken(Status status);
  void Erase(SlotId id);

  const int64_t peak_bytes_;
  mutable std::mutex mutex_;
  std::map<SlotId, Use> in_use_;
  int64_t used_bytes_ = 0;
  Status status_;
};

}  // namespace heddle::actor
