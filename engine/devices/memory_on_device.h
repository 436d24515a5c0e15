// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "core/programs/plan.h"
#include "engine/variables/session_options.h"

namespace heddle::engine {

/// What a plan takes at most of the memory of its device, of the rank with the most, in bytes.
struct MemoryOnDevice {
  Device device;
  int64_t memory_bytes = 0;  ///< That the device has.
  bool is_host = false;      ///< Its memory is the process's: Plan::peak_bytes and pool_bytes have all this.
  int64_t values = 0;        ///< Of registers there.
  int64_t working = 0;       ///< What an operator works with beside them.
};

/// nullopt where the plan has no device, or this process does not have it.
std::optional<MemoryOnDevice> MemoryOnDeviceOf(const Plan& plan);

/// Plan::device_room of a plan that is done otherwise, by who makes it for all ranks.
void SetDeviceRoom(const SessionOptions& session, Plan* plan);

}  // namespace heddle::engine
