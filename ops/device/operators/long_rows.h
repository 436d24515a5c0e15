// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/status.h"
#include "core/values/value.h"

namespace heddle::ops {

class DeviceQueue;
struct KernelCall;

/// X %*% Y of dense matrices of one type, on the device of the queue: X has rows longer than a column chunk,
/// Y at most 8 columns, at least one. The order is that of docs/numerics.md, section 3.
Result<std::optional<Value>> MultiplyLongRowsOnDevice(const KernelCall& call, DeviceQueue& queue);

}  // namespace heddle::ops
