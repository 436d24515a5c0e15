// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/values/matrix.h"
#include "ops/device/device.h"

namespace heddle::ops {

/// An int: 1 where some cell of a dense matrix on the device is infinite or NaN, else 0. Queues what finds
/// out.
Result<std::shared_ptr<DeviceMemory>> FindInfinite(const Matrix& matrix, ComputeDevice& device,
                                                   DeviceQueue& queue);

}  // namespace heddle::ops
