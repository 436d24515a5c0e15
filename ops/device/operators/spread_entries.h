// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/values/matrix.h"
#include "ops/device/device.h"

namespace heddle::ops {

/// The dense cells of a CSR matrix that is on the device, there. Queues what makes them.
Result<Matrix> SpreadEntries(const Matrix& matrix, ComputeDevice& device, DeviceQueue& queue);

}  // namespace heddle::ops
