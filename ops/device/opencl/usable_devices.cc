// SPDX-License-Identifier: Apache-2.0
#include "ops/device/opencl/usable_devices.h"

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "ops/device/opencl/opencl_devices.h"
#include "ops/device/self_test.h"

namespace heddle::ops {
namespace {

std::atomic<DeviceSet*> in_place_of_opencl = nullptr;

}  // namespace

void UseDevices(DeviceSet* devices) { in_place_of_opencl = devices; }

Result<DeviceSet*> DevicesWith(Device device) {
  static std::mutex mutex;
  static auto* const checked = new std::map<uint32_t, Status>();
  if (DeviceSet* const set = in_place_of_opencl; set != nullptr) return set;
  HEDDLE_ASSIGN_OR_RETURN(DeviceSet* const set, OpenClDevices());
  const std::vector<ComputeDevice*> devices = set->devices();
  if (device.index >= devices.size())
    return Unavailable("this machine has no device opencl:{}: of OpenCL devices it has {}", device.index,
                       devices.size());
  const std::lock_guard lock(mutex);
  if (const auto found = checked->find(device.index); found != checked->end())
    return found->second.ok() ? Result<DeviceSet*>(set) : found->second;
  const Status status = CheckArithmetic(*devices[device.index]);
  // A device that is busy, or whose memory is full, may be used later.
  if (status.ok() || status.code() == StatusCode::kUnimplemented) checked->emplace(device.index, status);
  if (!status.ok()) return status;
  return set;
}

ComputeDevice* UsableDevice(Device device) {
  const Result<DeviceSet*> set = DevicesWith(device);
  return set.ok() ? (*set)->devices()[device.index] : nullptr;
}

}  // namespace heddle::ops
