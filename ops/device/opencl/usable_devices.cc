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
std::atomic<const std::string*> refused_because = nullptr;

}  // namespace

void UseDevices(DeviceSet* devices) { in_place_of_opencl = devices; }

void RefuseDevices(const std::string& why) {
  // Lives as long as the process: another thread may be reading it.
  refused_because = new std::string(why);
}

Result<DeviceSet*> DevicesWith(Device device) {
  static std::mutex mutex;
  static auto* const checked = new std::map<uint32_t, Status>();
  if (const std::string* const why = refused_because; why != nullptr) return Unavailable("{}", *why);
  DeviceSet* set = in_place_of_opencl;
  const bool is_opencl = set == nullptr;
  if (is_opencl) {
    HEDDLE_ASSIGN_OR_RETURN(set, OpenClDevices());
  }
  const std::vector<ComputeDevice*> devices = set->devices();
  if (devices.empty()) return Unavailable("OpenCL knows no device");
  if (device.index >= devices.size())
    return Unavailable("there is no opencl:{}, the last device is opencl:{}", device.index,
                       devices.size() - 1);
  if (!is_opencl) return set;
  const std::lock_guard lock(mutex);
  if (const auto found = checked->find(device.index); found != checked->end())
    return found->second.ok() ? Result<DeviceSet*>(set) : found->second;
  const Status status = CheckArithmetic(*devices[device.index]);
  // A device that is busy, or whose memory is full, may be used later.
  if (status.code() != StatusCode::kResourceExhausted && status.code() != StatusCode::kUnavailable)
    checked->emplace(device.index, status);
  if (!status.ok()) return status;
  return set;
}

ComputeDevice* UsableDevice(Device device) {
  const Result<DeviceSet*> set = DevicesWith(device);
  return set.ok() ? (*set)->devices()[device.index] : nullptr;
}

}  // namespace heddle::ops
