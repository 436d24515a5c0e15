// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "core/programs/stream.h"
#include "ops/base/kernel.h"

// What tasks of plans with devices do (docs/devices.md). A process may lack the device that the plan names,
// and a device may fail: then the host computes, the bytes are the same, and the first time a warning says
// why.
namespace heddle::ops {

/// The operator of the call, by the device if the context has it and it takes the call, else by `host`.
/// Values on the device among the inputs are brought back for the host.
Status RunOnDeviceOrHost(Device device, const KernelSource& host, const KernelCall& call,
                         std::span<Value> results);

/// A dense matrix in the memory of the device; any other value, and one that finds no room there, as it is.
Result<Value> ToDeviceMemory(Device device, const Value& value, const KernelContext& context);

/// A matrix on a device in the memory of the host, stored as values of that format are; any other value as it
/// is.
Result<Value> ToHostMemory(const Value& value, Format format);

}  // namespace heddle::ops
