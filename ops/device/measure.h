// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/environment/clock.h"
#include "ops/device/device.h"

namespace heddle::ops {

/// What a device does in a second. 0: not measured.
struct DeviceRates {
  double copy_in = 0;    ///< Bytes from the memory of the process.
  double copy_out = 0;   ///< Bytes to it.
  double memory = 0;     ///< Bytes that a kernel reads and writes.
  double fma = 0;        ///< Fused multiply-adds of doubles.
  double launch_ns = 0;  ///< Nanoseconds of a kernel that does nothing, one after the other.
};

/// Measures it, in about half a second on a device of many units. Errors are those of the device.
Result<DeviceRates> MeasureDevice(ComputeDevice& device, Clock& clock);

}  // namespace heddle::ops
