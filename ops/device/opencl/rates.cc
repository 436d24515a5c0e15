// SPDX-License-Identifier: Apache-2.0
#include "ops/device/opencl/rates.h"

#include <fmt/core.h>

#include <charconv>
#include <map>
#include <mutex>
#include <string>

#include "ops/device/opencl/opencl_devices.h"
#include "ops/device/opencl/opencl_programs.h"
#include "ops/device/opencl/usable_devices.h"
#include "ops/io/object_cache.h"

namespace heddle::ops {
namespace {

// Drivers keep what they have compiled, so that this is measured once by each user: the number is kept beside
// the kernels. 0 where it cannot be measured.
double CompileNsOf(ComputeDevice& device) {
  const DeviceDescription& description = device.description();
  const ObjectCache disk(ObjectCache::FolderOf("kernels"), kMostBytesOfKernels);
  const std::string key =
      fmt::format("nanoseconds of compiling\n{}\n{}", description.name, description.driver);
  double ns = 0;
  if (const std::optional<std::string> kept = disk.Find(key)) {
    const auto [end, error] = std::from_chars(kept->data(), kept->data() + kept->size(), ns);
    if (error == std::errc() && end == kept->data() + kept->size() && ns > 0) return ns;
  }
  Clock& clock = SystemClock();
  const Result<double> measured = MeasureCompiling(device, clock, clock.WallMs());
  if (!measured.ok()) return 0;
  disk.Store(key, fmt::format("{:.0f}", *measured));
  return *measured;
}

}  // namespace

DeviceRates RatesOf(Device device) {
  static std::mutex mutex;
  static auto* const measured = new std::map<uint32_t, DeviceRates>();
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = measured->try_emplace(device.index);
  if (!is_new) return found->second;
  ComputeDevice* const usable = UsableDevice(device);
  if (usable == nullptr) return {};
  const Result<DeviceRates> rates = MeasureDevice(*usable, SystemClock());
  if (!rates.ok()) return found->second;
  found->second = *rates;
  found->second.compile_ns = CompileNsOf(*usable);
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
