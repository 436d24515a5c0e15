// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "ops/device/device.h"

// The kernels that a process has compiled, by device and source: whoever prints the same text gets the same
// kernel. The least recently used go when there are many. Thread-safe.
namespace heddle::ops {

/// The function `name` of the program, compiled if it is new; or why there is none. A compiler that refuses
/// it is not asked again; one that had no memory, or no device (IsForNow), is, but for kMostFailures times.
Result<std::shared_ptr<DeviceKernel>> KernelOf(ComputeDevice& device, const std::string& source,
                                               const std::string& name);

/// Whether KernelOf takes next to no time: this process has compiled it, or an earlier one of the user, whose
/// work the device keeps (ComputeDevice::IsKept).
bool IsCompiled(const ComputeDevice& device, const std::string& source, const std::string& name);

constexpr int kMostFailures = 3;

/// Whether what has failed may go well later.
inline bool IsForNow(const Status& status) {
  return status.code() == StatusCode::kResourceExhausted || status.code() == StatusCode::kUnavailable;
}

}  // namespace heddle::ops
