// SPDX-License-Identifier: Apache-2.0
#include "ops/device/device_matrix.h"

#include <utility>

#include "ops/cells/storage.h"

namespace heddle::ops {

// All matrices on a device have been made here.
const CellsOnDevice& CellsOf(const Matrix& matrix) {
  return static_cast<const CellsOnDevice&>(matrix.device_cells());
}

Status CellsOnDevice::Read(int64_t begin, int64_t end, DeviceQueue& queue, void* to) const {
  HEDDLE_RETURN_IF_ERROR(WaitIn(queue));
  const int64_t row_bytes = shape_.columns * BytesOf(element_type_);
  return queue.Read(*memory_, begin * row_bytes, (end - begin) * row_bytes, to);
}

Status CellsOnDevice::Lost(const Status& why) const {
  return Unavailable("a {} matrix was only in the memory of the device {}, and is lost with it ({}); run "
                     "again with --devices cpu",
                     shape_, device_.description().name, why.message());
}

Result<Matrix> CellsOnDevice::ToHost(int64_t begin, int64_t end) const {
  if (original_) return original_->Rows(begin, end);
  HEDDLE_ASSIGN_OR_RETURN(Matrix cells, Matrix::Dense(end - begin, shape_.columns, element_type_));
  if (cells.cells() == 0) return cells;
  Status status;
  {
    const Result<std::unique_ptr<DeviceQueue>> queue = device_.MakeQueue();
    status = queue.status();
    if (status.ok()) status = Read(begin, end, **queue, cells.mutable_data<char>());
    // Also what has been queued before something failed may write to the cells.
    if (queue.ok())
      if (const Status finished = (*queue)->Finish(); status.ok()) status = finished;
  }
  if (status.code() == StatusCode::kUnavailable) return Lost(status);
  HEDDLE_RETURN_IF_ERROR(status);
  return cells;
}

Result<std::shared_ptr<const CellsOnDevice>> MakeOnDevice(ComputeDevice& device, Shape shape,
                                                          ElementType type) {
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<DeviceMemory> memory,
                          device.Allocate(shape.rows * shape.columns * BytesOf(type)));
  return std::shared_ptr<const CellsOnDevice>(
      std::make_shared<CellsOnDevice>(device, std::move(memory), shape, type));
}

Result<Matrix> ToDevice(const Matrix& matrix, ComputeDevice& device, DeviceQueue& queue) {
  if (matrix.IsOnDevice() && CellsOf(matrix).device() == device.description().device) {
    HEDDLE_RETURN_IF_ERROR(CellsOf(matrix).WaitIn(queue));
    return matrix;
  }
  HEDDLE_ASSIGN_OR_RETURN(const Matrix dense, matrix.IsOnDevice() ? ToDense(matrix) : AsDense(matrix));
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const CellsOnDevice> cells,
                          MakeOnDevice(device, dense.shape(), dense.element_type()));
  if (dense.cells() > 0) {
    HEDDLE_RETURN_IF_ERROR(
        queue.Write(dense.data<char>(), dense.cells() * BytesOf(dense.element_type()), *cells->memory(), 0));
    if (const Status status = queue.WhenDone([dense](const Status&) {}); !status.ok()) {
      static_cast<void>(queue.Finish());
      return status;
    }
  }
  return Matrix::OfDeviceCells(cells);
}

PlaceOnDevice PlaceOf(const Matrix& matrix) {
  const CellsOnDevice& cells = CellsOf(matrix);
  return {cells.memory(), matrix.first_row() * matrix.columns()};
}

std::optional<Matrix> OriginalOf(const Matrix& matrix) {
  const std::optional<Matrix>& original = CellsOf(matrix).original();
  if (!original) return std::nullopt;
  return original->Rows(matrix.first_row(), matrix.first_row() + matrix.rows());
}

Result<Matrix> ReadToHost(const Matrix& matrix, DeviceQueue& queue) {
  if (std::optional<Matrix> original = OriginalOf(matrix)) return *std::move(original);
  HEDDLE_ASSIGN_OR_RETURN(Matrix cells,
                          Matrix::Dense(matrix.rows(), matrix.columns(), matrix.element_type()));
  if (cells.cells() == 0) return cells;
  const int64_t begin = matrix.first_row();
  HEDDLE_RETURN_IF_ERROR(
      CellsOf(matrix).Read(begin, begin + matrix.rows(), queue, cells.mutable_data<char>()));
  return cells;
}

}  // namespace heddle::ops
