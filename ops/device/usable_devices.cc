// SPDX-License-Identifier: Apache-2.0
#include "ops/device/usable_devices.h"

#include <map>
#include <mutex>
#include <vector>

#include "ops/device/opencl/opencl_devices.h"
#include "ops/device/self_test.h"

namespace heddle::ops {

Result<DeviceSet*> DevicesWith(Device device) {
  static std::mutex mutex;
  static auto* const checked = new std::map<uint32_t, Status>();
  HEDDLE_ASSIGN_OR_RETURN(DeviceSet* const set, OpenClDevices());
  const std::vector<ComputeDevice*> devices = set->devices();
  if (device.index >= devices.size())
    return Unavailable("this machine has {} OpenCL devices, numbered from 0", devices.size());
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = checked->try_emplace(device.index);
  if (is_new) place->second = CheckArithmetic(*devices[device.index]);
  if (!place->second.ok()) return place->second;
  return set;
}

}  // namespace heddle::ops
