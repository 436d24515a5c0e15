// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/values/data_type.h"
#include "core/values/matrix.h"

namespace heddle {

/// The cells of a matrix in the memory of a device that the host cannot read: dense, row by row without
/// padding, or CSR. Nobody writes to cells that somebody else can see. The memory goes back to the device
/// with the last owner.
class DeviceCells {
 public:
  virtual ~DeviceCells() = default;
  virtual int64_t rows() const = 0;
  virtual int64_t columns() const = 0;
  virtual ElementType element_type() const = 0;
  /// CSR: its entries, of which some may be zeros.
  virtual bool IsSparse() const { return false; }
  /// Entries of a CSR matrix (rows x columns for another one).
  virtual int64_t stored() const { return rows() * columns(); }
  /// What they take of the memory of the device.
  virtual int64_t bytes() const = 0;
  /// Rows [begin, end) in the memory of the host, dense, or CSR without zeros. Waits for whatever computes
  /// them. kResourceExhausted; kUnavailable where the device is lost, and its memory with it.
  virtual Result<Matrix> ToHost(int64_t begin, int64_t end) const = 0;
};

/// Of a matrix on a device one in the memory of the host (DeviceCells::ToHost); any other one as it is.
Result<Matrix> ToHost(const Matrix& matrix);

}  // namespace heddle
