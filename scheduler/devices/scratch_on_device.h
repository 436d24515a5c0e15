// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/programs/plan.h"
#include "ops/device/device.h"

namespace heddle::scheduler {

/// What the operator of one task works with at most in the memory of the device beside the registers of the
/// plan, in bytes (ops::DeviceOperators::ScratchBytes). Commands of a device are done one after the other,
/// and one that finds no memory waits for those before it: a plan has room where PeakOnDevice and this have.
int64_t ScratchOnDevice(const Plan& plan, const ops::DeviceDescription& device);

}  // namespace heddle::scheduler
