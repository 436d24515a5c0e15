// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/status.h"
#include "core/values/value.h"

// What stands in Operator::run_on_device: operators that are no tile programs, by kernels of their own.
// Operators name them here without knowing devices; ops/device/operators computes them.
namespace heddle::ops {

class DeviceQueue;
struct KernelCall;

/// X %*% Y with more than 8 columns, and t(X) %*% Y with as many (ops/device/operators/product.h); X %*% Y
/// with fewer where rows of X are longer than a column chunk (ops/device/operators/long_rows.h).
Result<std::optional<Value>> MultiplyOnDevice(const KernelCall& call, DeviceQueue& queue);
Result<std::optional<Value>> MultiplyTransposedOnDevice(const KernelCall& call, DeviceQueue& queue);

// ops/device/operators/long_rows.cc: rowVars, rowSds, rowIndexMax, rowIndexMin of rows longer than a column
// chunk; nothing for others, which are tile programs.
Result<std::optional<Value>> AggregateLongRowsOnDevice(const KernelCall& call, DeviceQueue& queue);

// ops/device/operators/moves.cc.
Result<std::optional<Value>> TransposeOnDevice(const KernelCall& call, DeviceQueue& queue);
Result<std::optional<Value>> ReverseOnDevice(const KernelCall& call, DeviceQueue& queue);
Result<std::optional<Value>> RollOnDevice(const KernelCall& call, DeviceQueue& queue);
Result<std::optional<Value>> IndexOnDevice(const KernelCall& call, DeviceQueue& queue);
Result<std::optional<Value>> CbindOnDevice(const KernelCall& call, DeviceQueue& queue);
Result<std::optional<Value>> RbindOnDevice(const KernelCall& call, DeviceQueue& queue);
Result<std::optional<Value>> DiagonalOnDevice(const KernelCall& call, DeviceQueue& queue);

// ops/device/operators/cumulative.cc: cumsum, cumprod, cummin, cummax; cumsumprod.
Result<std::optional<Value>> CumulateOnDevice(const KernelCall& call, DeviceQueue& queue);
Result<std::optional<Value>> CumsumprodOnDevice(const KernelCall& call, DeviceQueue& queue);

}  // namespace heddle::ops
