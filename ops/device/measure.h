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
  double compile_ns = 0;  ///< Until a kernel has run for the first time that nobody has compiled before.
  bool operator==(const DeviceRates&) const = default;
};

/// Measures it, but for compile_ns, in about half a second on a device of many units. Errors are those of the
/// device.
Result<DeviceRates> MeasureDevice(ComputeDevice& device, Clock& clock);

/// Measures DeviceRates::compile_ns, by a kernel of the size that those of fused operators have. `salt`: a
/// number that no other call has had, in whatever process, since drivers keep what they have compiled.
Result<double> MeasureCompiling(ComputeDevice& device, Clock& clock, int64_t salt);

}  // namespace heddle::ops
