// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/device/device.h"
#include "ops/device/opencl/opencl_devices.h"

namespace heddle::ops::testing {

/// The first OpenCL device of this machine; nullptr where there is none.
inline ComputeDevice* FirstDevice() {
  const Result<DeviceSet*> set = OpenClDevices();
  if (!set.ok()) return nullptr;
  const std::vector<ComputeDevice*> devices = (*set)->devices();
  return devices.empty() ? nullptr : devices.front();
}

}  // namespace heddle::ops::testing
