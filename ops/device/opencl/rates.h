// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/environment/clock.h"
#include "ops/device/measure.h"
#include "ops/io/object_cache.h"

// What devices do in a second. It takes seconds to measure, so that a user's processes share one measurement,
// which is kept on disk beside the compiled kernels, by device and version of the driver.
namespace heddle::ops {

/// The kernels and rates of this user on disk.
ObjectCache DiskOfDevices();

/// What an earlier process has kept; nullopt where none has, or what it has kept is damaged or foreign.
std::optional<DeviceRates> KeptRates(const ObjectCache& disk, const DeviceDescription& device);

/// Measures all of DeviceRates, and keeps it in place of what is kept. Errors are those of the device; a
/// compiler that cannot be measured has compile_ns 0, and nothing is kept.
Result<DeviceRates> MeasureRates(ComputeDevice& device, Clock& clock, const ObjectCache& disk);

/// What is kept, or else measured.
Result<DeviceRates> RatesOf(ComputeDevice& device, Clock& clock, const ObjectCache& disk);

/// Those of a device of this process, looked for once; all zero where there is no such device, or it computes
/// otherwise than the processor.
DeviceRates RatesOf(Device device);

/// The device with the fastest memory of those that are not the processor itself and compute as it does;
/// nullopt: there is none.
std::optional<Device> FastestDevice();

}  // namespace heddle::ops
