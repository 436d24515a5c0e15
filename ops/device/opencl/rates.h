// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ops/device/measure.h"

namespace heddle::ops {

/// What a device of this process does in a second (MeasureDevice, MeasureCompiling), measured once; all zero
/// where there is no such device, or it computes otherwise than the processor.
DeviceRates RatesOf(Device device);

/// The device with the fastest memory of those that are not the processor itself and compute as it does;
/// nullopt: there is none.
std::optional<Device> FastestDevice();

}  // namespace heddle::ops
