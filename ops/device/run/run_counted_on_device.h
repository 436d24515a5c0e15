// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>

#include "ops/device/run/run_tiles_on_device.h"

namespace heddle::ops {

/// Whether result `r` of the program is CSR, and made as dense rows: it has entries where the driver may have
/// none.
bool IsMadeDense(const TileProgram& program, size_t r);

/// Whether the device counts entries for calls of the program, whose number the host has to know before it
/// goes on: those of its driver (TileProgram::united), or of results that are made dense.
bool CountsEntries(const TileProgram& program);

/// As DeviceTiles::Queue, of a program that CountsEntries: queues what counts them, and the rest when that is
/// done (QueuedCall::HasMore). CSR results are written then: `results` outlives the call.
Result<std::unique_ptr<QueuedCall>> QueueCounted(std::shared_ptr<const DeviceTiles> tiles,
                                                 const KernelCall& call, DeviceQueue& queue,
                                                 std::span<Value> results, std::map<NodeId, Value> scalars,
                                                 bool keeps_scalars);

}  // namespace heddle::ops
