// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/values/data_type.h"
#include "core/values/matrix.h"

namespace heddle {

/// The cells of a matrix in the memory of a device that the host cannot read: dense, row by row without
/// padding. Nobody writes to cells that somebody else can see. The memory goes back to the device with the
/// last owner.
class DeviceCells {
 public:
  virtual ~DeviceCells() = default;
  virtual int64_t rows() const = 0;
  virtual int64_t columns() const = 0;
  virtual ElementType element_type() const = 0;
  /// Rows [begin, end), dense in the memory of the host. Waits for whatever computes them.
  /// kResourceExhausted; kUnavailable where the device is lost, and its memory with it.
  virtual Result<Matrix> ToHost(int64_t begin, int64_t end) const = 0;
};

}  // namespace heddle
