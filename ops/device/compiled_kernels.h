// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "ops/device/device.h"

// The kernels that a process has compiled, by device and source: whoever prints the same text gets the same
// kernel. The least recently used go when there are many. Thread-safe.
namespace heddle::ops {

/// The function `name` of the program, compiled if it is new; or why the compiler of the device refuses it,
/// which is not asked again.
Result<std::shared_ptr<DeviceKernel>> KernelOf(ComputeDevice& device, const std::string& source,
                                               const std::string& name);

/// Whether KernelOf takes next to no time: this process has compiled it, or an earlier one of the user, whose
/// work the device keeps (ComputeDevice::IsKept).
bool IsCompiled(const ComputeDevice& device, const std::string& source, const std::string& name);

/// How many kernels KernelOf has had compiled in this process, of all devices.
int64_t CompiledKernels();

}  // namespace heddle::ops
