// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "ops/device/operators/device_commands.h"

namespace heddle::ops {

/// Queues what makes row offsets of numbers of entries: `offsets` has that of row i at place i + 1, and then
/// the sum of rows 0 to i; place 0 becomes 0. Needs: rows > 0.
Status AddUpRows(DeviceCommands& commands, int64_t rows, const std::shared_ptr<DeviceMemory>& offsets);

}  // namespace heddle::ops
