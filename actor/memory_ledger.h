// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "core/programs/plan.h"
#include "core/values/value.h"

namespace heddle::actor {

/// Debug builds keep a ledger of the memory that a run uses, see MemoryLedger.
#ifdef NDEBUG
inline constexpr bool kMemoryIsChecked = false;
#else
inline constexpr bool kMemoryIsChecked = true;
#endif

/// Checks that the slots of one rank stay where the plan placed them (Register::offset): inside the block
/// that the plan stated (I8), and never two of them at one place at a time (I11). Matrix memory itself comes
/// from the process's pool, so it is the plan's promise that is checked here.
///
/// A slot is in use from the moment its producer begins to write it until its last reader on this rank says
/// that it is through (not until that ACK arrives: nobody looks at the memory on the way). Registers without
/// an offset are left alone. Thread-safe.
class MemoryLedger {
 public:
  explicit MemoryLedger(int64_t block_bytes) : block_bytes_(block_bytes) {}

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
  struct Place {
    int64_t end = 0;
    RegisterId register_id = 0;
    int readers = 0;
  };
  static int64_t BeginOf(const Register& description, uint8_t slot) {
    return description.offset + description.bytes * slot;
  }
  static bool IsPlaced(const Register& description) {
    return description.offset != kNoOffset && description.bytes > 0;
  }
  void Broken(Status status);
  void Erase(int64_t begin);

  const int64_t block_bytes_;
  mutable std::mutex mutex_;
  std::map<int64_t, Place> places_;  ///< In use, by where they begin.
  int64_t used_bytes_ = 0;
  Status status_;
};

}  // namespace heddle::actor
