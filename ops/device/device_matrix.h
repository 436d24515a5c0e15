// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "core/values/device_cells.h"
#include "ops/device/device.h"

namespace heddle::ops {

/// The entries of a CSR matrix in the memory of a device: values as they are stored, 32-bit column indexes,
/// and 64-bit places of the first entry of each row, and behind the last one; the first is 0. Matrices with
/// the same entries share columns and offsets.
struct EntriesOnDevice {
  std::shared_ptr<DeviceMemory> values, columns, offsets;
  int64_t count = 0;  ///< Of entries.
};

/// The cells of a matrix in the memory of a device.
class CellsOnDevice : public DeviceCells {
 public:
  /// Dense.
  CellsOnDevice(ComputeDevice& device, std::shared_ptr<DeviceMemory> memory, Shape shape, ElementType type)
      : device_(device), memory_(std::move(memory)), shape_(shape), element_type_(type) {}
  /// CSR.
  CellsOnDevice(ComputeDevice& device, EntriesOnDevice entries, Shape shape, ElementType type)
      : device_(device), entries_(std::move(entries)), shape_(shape), element_type_(type) {}

  Device device() const { return device_.description().device; }
  int64_t rows() const override { return shape_.rows; }
  int64_t columns() const override { return shape_.columns; }
  ElementType element_type() const override { return element_type_; }
  bool IsSparse() const override { return entries_.has_value(); }
  int64_t stored() const override { return IsSparse() ? entries_->count : rows() * columns(); }
  int64_t bytes() const override;
  /// Of cells whose device is lost those that the host has (KeepOriginal); kUnavailable says that there are
  /// none.
  Result<Matrix> ToHost(int64_t begin, int64_t end) const override;

  /// Of dense cells.
  const std::shared_ptr<DeviceMemory>& memory() const { return memory_; }
  /// Of a CSR matrix.
  const EntriesOnDevice& entries() const { return *entries_; }
  ComputeDevice& compute_device() const { return device_; }

  /// Before others see the cells: they are there when the commands of `queue` before `mark` are done. Without
  /// it they are there already.
  void WrittenIn(const DeviceQueue& queue, std::shared_ptr<DeviceMark> mark) const {
    queue_ = &queue.target();
    mark_ = std::move(mark);
  }
  /// Commands of `queue` that follow find the cells there.
  Status WaitIn(DeviceQueue& queue) const {
    return &queue.target() == queue_ ? OkStatus() : queue.WaitFor(mark_);
  }

  /// The same cells in the memory of the host, stored likewise, where somebody else holds them anyway.
  const std::optional<Matrix>& original() const { return original_; }
  /// Before others see the cells.
  void KeepOriginal(Matrix original) const { original_ = std::move(original); }

  /// Queues copies of rows [begin, end), of a CSR matrix of all entries: the result has its cells when they
  /// are done, and whoever asks holds its memory until then. A CSR one may have zeros (WithoutZeros).
  Result<Matrix> Read(int64_t begin, int64_t end, DeviceQueue& queue) const;
  /// Why they cannot be had any more: what happened to the device, and what to do.
  Status Lost(const Status& why) const;

 private:
  ComputeDevice& device_;
  const std::shared_ptr<DeviceMemory> memory_;
  const std::optional<EntriesOnDevice> entries_;
  const Shape shape_;
  const ElementType element_type_;
  // Said by who makes the cells, before he hands them on.
  mutable const DeviceQueue* queue_ = nullptr;
  mutable std::shared_ptr<DeviceMark> mark_;
  mutable std::optional<Matrix> original_;
};

/// Where a matrix on a device is.
struct PlaceOnDevice {
  std::shared_ptr<DeviceMemory> memory;
  int64_t first_cell = 0;
};

/// Uninitialised cells.
Result<std::shared_ptr<const CellsOnDevice>> MakeOnDevice(ComputeDevice& device, Shape shape,
                                                          ElementType type);
/// The cells of a matrix, dense, in the memory of the device, where commands of `queue` that follow find
/// them: the matrix itself where it is there. Queues a copy, which keeps the cells of the host until it is
/// done. kUnimplemented for a CSR matrix that is there.
Result<Matrix> ToDevice(const Matrix& matrix, ComputeDevice& device, DeviceQueue& queue);
/// The matrix as CSR in the memory of the device, likewise. kUnimplemented for rows of a CSR matrix that is
/// there, and for one that is there and dense.
Result<Matrix> EntriesToDevice(const Matrix& matrix, ComputeDevice& device, DeviceQueue& queue);
/// A CSR matrix with the entries of another one that is on the device; its values are uninitialised.
Result<Matrix> SameEntriesOnDevice(const Matrix& matrix, ElementType type);
/// Of a dense matrix on a device.
PlaceOnDevice PlaceOf(const Matrix& matrix);
ComputeDevice& DeviceOf(const Matrix& matrix);
const CellsOnDevice& CellsOf(const Matrix& matrix);
/// Of a matrix on a device one in the memory of the host: that which is there already (CellsOnDevice), or one
/// that has its cells when the commands of `queue` are done, as CellsOnDevice::Read has it.
Result<Matrix> ReadToHost(const Matrix& matrix, DeviceQueue& queue);
/// A matrix that has been read, if it is CSR without the entries that are zero: the device keeps those where
/// an operator has made them. Any other one as it is.
Result<Matrix> WithoutZeros(Matrix matrix);
/// nullopt where the host does not have the cells.
std::optional<Matrix> OriginalOf(const Matrix& matrix);

}  // namespace heddle::ops
