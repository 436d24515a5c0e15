// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/device/device.h"

namespace heddle::ops {

/// The devices of this process, if `device` is among them and computes as the processor does
/// (CheckArithmetic, once in a process). kUnavailable or kUnimplemented with the reason where not.
Result<DeviceSet*> DevicesWith(Device device);

/// That device; nullptr where DevicesWith fails.
ComputeDevice* UsableDevice(Device device);

}  // namespace heddle::ops
