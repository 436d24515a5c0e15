// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "core/programs/phase.h"
#include "ops/base/operator.h"
#include "ops/device/device.h"

namespace heddle::ops {

/// What a call of an operator with kernels of its own (Operator::run_on_device) takes of the memory of the
/// device at most beside what it reads and makes, in bytes. `inputs`: the whole operands; `rows`: how many of
/// their rows the call has, where it has some; -1: all. What has no known size counts as empty.
int64_t ScratchOfKernels(const Node& node, std::span<const ValueInfo> inputs, Phase phase, int64_t rows,
                         const DeviceDescription& device);

}  // namespace heddle::ops
