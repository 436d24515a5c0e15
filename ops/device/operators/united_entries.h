// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/values/matrix.h"
#include "ops/device/device.h"

namespace heddle::ops {

/// The entries of several CSR matrices on a device, put together. How many there are, only the device can
/// tell: they are counted there, and their memory is taken when the host knows the number.
class UnitedEntries {
 public:
  /// Queues what counts the entries of all `matrices`, which have one shape with rows, and one type. Whoever
  /// holds the object holds what these commands write; they are done before Make, or before it goes.
  static Result<std::unique_ptr<UnitedEntries>> Count(std::vector<Matrix> matrices, ComputeDevice& device,
                                                      DeviceQueue& queue);
  /// The first matrix, with zeros where others have entries and it has none: commands of `queue` that follow
  /// find it there. kResourceExhausted where the device has no room for so many entries.
  Result<Matrix> Make(DeviceQueue& queue) const;

 private:
  UnitedEntries(std::vector<Matrix> matrices, ComputeDevice& device)
      : matrices_(std::move(matrices)), device_(device) {}

  const std::vector<Matrix> matrices_;
  ComputeDevice& device_;
  std::shared_ptr<DeviceMemory> offsets_;
  int64_t count_ = 0;
};

}  // namespace heddle::ops
