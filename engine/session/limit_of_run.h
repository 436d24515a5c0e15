// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace heddle::engine {

/// While one lives, the memory of the process (MemoryBudget::Process()) is limited to `memory_bytes`; 0: it
/// asks for no limit. Of several at once the smallest counts, and with the last one the process has the limit
/// again that it had before the first. What others of the process hold counts, too. Thread-safe.
class LimitOfRun {
 public:
  explicit LimitOfRun(int64_t memory_bytes);
  ~LimitOfRun();
  LimitOfRun(const LimitOfRun&) = delete;
  LimitOfRun& operator=(const LimitOfRun&) = delete;

 private:
  const int64_t memory_bytes_;
};

}  // namespace heddle::engine
