// SPDX-License-Identifier: Apache-2.0
#include "ops/device/opencl/rates.h"

#include <map>
#include <mutex>

#include "ops/device/opencl/opencl_devices.h"
#include "ops/device/opencl/usable_devices.h"

namespace heddle::ops {

DeviceRates RatesOf(Device device) {
  static std::mutex mutex;
  static auto* const measured = new std::map<uint32_t, DeviceRates>();
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = measured->try_emplace(device.index);
  if (!is_new) return found->second;
  ComputeDevice* const usable = UsableDevice(device);
  if (usable == nullptr) return {};
  const Result<DeviceRates> rates = MeasureDevice(*usable, SystemClock());
  if (rates.ok()) found->second = *rates;
  return found->second;
}

std::optional<Device> FastestDevice() {
  const Result<DeviceSet*> set = OpenClDevices();
  if (!set.ok()) return std::nullopt;
  std::optional<Device> fastest;
  double most = 0;
  for (const ComputeDevice* const device : (*set)->devices()) {
    if (device->description().is_host) continue;
    const double memory = RatesOf(device->description().device).memory;
    if (memory <= most) continue;
    most = memory;
    fastest = device->description().device;
  }
  return fastest;
}

}  // namespace heddle::ops
