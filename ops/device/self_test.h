// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/device/device.h"

namespace heddle::ops {

/// Whether the device computes as IEEE 754 has it, on numbers of all sizes, denormals, infinities and such as
/// are hard to round: add, subtract, multiply, divide, square root, fma and conversions of doubles and
/// floats, and no two operations with one rounding. kUnimplemented, with the first operation that differs,
/// for a device that does not: its results would not be those of the processor.
Status CheckArithmetic(ComputeDevice& device);

}  // namespace heddle::ops
