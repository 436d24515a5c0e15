// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ops/device/device.h"

namespace heddle::ops {

/// The devices of this process, if `device` is among them and computes as the processor does
/// (CheckArithmetic, once in a process). kUnavailable or kUnimplemented with the reason where not; kInternal
/// where the device's compiler refuses that test; kResourceExhausted where it has no memory for it now.
Result<DeviceSet*> DevicesWith(Device device);

/// That device; nullptr where DevicesWith fails.
ComputeDevice* UsableDevice(Device device);

/// From now on this process uses no device, and opens no driver: DevicesWith says `why`, kUnavailable.
void RefuseDevices(const std::string& why);

/// From now on these are the devices of this process in place of OpenCL's; nullptr: OpenCL's again. Between
/// sessions: for tests, whose devices are simulated.
void UseDevices(DeviceSet* devices);

}  // namespace heddle::ops
