// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <vector>

#include "ops/device/device.h"
#include "ops/device/opencl/opencl_devices.h"

namespace heddle::ops::testing {

/// The first OpenCL device of this machine, or the one that HEDDLE_TEST_DEVICE names (deploy/device); nullptr
/// where there is none.
inline ComputeDevice* FirstDevice() {
  const Result<DeviceSet*> set = OpenClDevices();
  if (!set.ok()) return nullptr;
  const std::vector<ComputeDevice*> devices = (*set)->devices();
  const char* const named = std::getenv("HEDDLE_TEST_DEVICE");
  const size_t index = named == nullptr ? 0 : ParseDevice(named).value_or(Device{}).index;
  return index < devices.size() ? devices[index] : nullptr;
}

}  // namespace heddle::ops::testing
