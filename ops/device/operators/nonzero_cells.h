// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "core/values/matrix.h"
#include "ops/device/device.h"

namespace heddle::ops {

/// The cells of a dense matrix on a device that are not 0, as a CSR matrix. How many there are, only the
/// device can tell: they are counted there, and their memory is taken when the host knows the number.
class NonzeroCells {
 public:
  /// Queues what counts the cells of each row; there are rows. Whoever holds the object holds what these
  /// commands write; they are done before Make, or before it goes.
  static Result<std::unique_ptr<NonzeroCells>> Count(Matrix matrix, ComputeDevice& device,
                                                     DeviceQueue& queue);
  /// Commands of `queue` that follow find the CSR matrix there. kResourceExhausted where the device has no
  /// room for so many entries.
  Result<Matrix> Make(DeviceQueue& queue) const;

 private:
  NonzeroCells(Matrix matrix, ComputeDevice& device) : matrix_(std::move(matrix)), device_(device) {}

  const Matrix matrix_;
  ComputeDevice& device_;
  std::shared_ptr<DeviceMemory> offsets_;
  int64_t count_ = 0;
};

}  // namespace heddle::ops
