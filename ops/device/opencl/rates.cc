// SPDX-License-Identifier: Apache-2.0
#include "ops/device/opencl/rates.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <map>
#include <mutex>
#include <string>

#include "ops/device/opencl/opencl_devices.h"
#include "ops/device/opencl/opencl_programs.h"
#include "ops/device/opencl/usable_devices.h"

namespace heddle::ops {
namespace {

constexpr double DeviceRates::*kRates[] = {&DeviceRates::copy_in, &DeviceRates::copy_out,
                                           &DeviceRates::memory,  &DeviceRates::fma,
                                           &DeviceRates::launch_ns, &DeviceRates::compile_ns};

std::string KeyOf(const DeviceDescription& device) {
  return fmt::format("rates of a device\n{}\n{}", device.name, device.driver);
}

}  // namespace

ObjectCache DiskOfDevices() { return {ObjectCache::FolderOf("kernels"), kMostBytesOfKernels}; }

std::optional<DeviceRates> KeptRates(const ObjectCache& disk, const DeviceDescription& device) {
  const std::optional<std::string> kept = disk.Find(KeyOf(device));
  if (!kept) return std::nullopt;
  DeviceRates rates;
  const char *at = kept->data(), *const end = at + kept->size();
  for (double DeviceRates::*const rate : kRates) {
    const auto [after, error] = std::from_chars(at, end, rates.*rate);
    // Each ends a line.
    if (error != std::errc() || after == end || *after != '\n') return std::nullopt;
    if (!std::isfinite(rates.*rate) || rates.*rate <= 0) return std::nullopt;
    at = after + 1;
  }
  return at == end ? std::optional(rates) : std::nullopt;
}

Result<DeviceRates> MeasureRates(ComputeDevice& device, Clock& clock, const ObjectCache& disk) {
  HEDDLE_ASSIGN_OR_RETURN(DeviceRates rates, MeasureDevice(device, clock));
  const Result<double> compile_ns = MeasureCompiling(device, clock, clock.WallMs());
  if (!compile_ns.ok()) return rates;
  rates.compile_ns = *compile_ns;
  std::string text;
  for (double DeviceRates::*const rate : kRates) text += fmt::format("{}\n", rates.*rate);
  disk.Store(KeyOf(device.description()), text);
  return rates;
}

Result<DeviceRates> RatesOf(ComputeDevice& device, Clock& clock, const ObjectCache& disk) {
  if (const std::optional<DeviceRates> kept = KeptRates(disk, device.description())) return *kept;
  return MeasureRates(device, clock, disk);
}

DeviceRates RatesOf(Device device) {
  static std::mutex mutex;
  static auto* const known = new std::map<uint32_t, DeviceRates>();
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known->try_emplace(device.index);
  if (!is_new) return found->second;
  ComputeDevice* const usable = UsableDevice(device);
  if (usable == nullptr) return {};
  const Result<DeviceRates> rates = RatesOf(*usable, SystemClock(), DiskOfDevices());
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
