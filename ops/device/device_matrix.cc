// SPDX-License-Identifier: Apache-2.0
#include "ops/device/device_matrix.h"

#include <utility>
#include <vector>

#include "ops/cells/storage.h"

namespace heddle::ops {
namespace {

// Of a matrix on a device: all that are there have been made here.
const CellsOnDevice& CellsOf(const Matrix& matrix) {
  return static_cast<const CellsOnDevice&>(matrix.device_cells());
}

}  // namespace

Result<Matrix> CellsOnDevice::ToHost(int64_t begin, int64_t end) const {
  HEDDLE_ASSIGN_OR_RETURN(Matrix cells, Matrix::Dense(end - begin, shape_.columns, element_type_));
  if (cells.cells() == 0) return cells;
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceQueue> queue, device_.MakeQueue());
  const int64_t row_bytes = shape_.columns * BytesOf(element_type_);
  HEDDLE_RETURN_IF_ERROR(
      queue->Read(*memory_, begin * row_bytes, (end - begin) * row_bytes, cells.mutable_data<char>()));
  HEDDLE_RETURN_IF_ERROR(queue->Finish());
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
  if (matrix.IsOnDevice() && CellsOf(matrix).device() == device.description().device) return matrix;
  HEDDLE_ASSIGN_OR_RETURN(const Matrix dense, matrix.IsOnDevice() ? ToDense(matrix) : AsDense(matrix));
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const CellsOnDevice> cells,
                          MakeOnDevice(device, dense.shape(), dense.element_type()));
  if (dense.cells() > 0) {
    HEDDLE_RETURN_IF_ERROR(
        queue.Write(dense.data<char>(), dense.cells() * BytesOf(dense.element_type()), *cells->memory(), 0));
    HEDDLE_RETURN_IF_ERROR(queue.WhenDone([dense](const Status&) {}));
  }
  return Matrix::OfDeviceCells(cells);
}

Result<EntriesOnDevice> EntriesToDevice(const Matrix& matrix, ComputeDevice& device, DeviceQueue& queue) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix host, matrix.IsOnDevice() ? ToDense(matrix) : Result<Matrix>(matrix));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix entries, AsSparse(host));
  const int64_t first = entries.row_offsets()[0], count = entries.stored();
  // Of a view the first entry is not the first of its arrays.
  const auto offsets = std::make_shared<std::vector<int64_t>>(entries.row_offsets(),
                                                              entries.row_offsets() + entries.rows() + 1);
  for (int64_t& offset : *offsets) offset -= first;
  EntriesOnDevice there{.count = count};
  const auto copy = [&](const void* from, int64_t bytes, std::shared_ptr<DeviceMemory>* to) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(*to, device.Allocate(bytes));
    return bytes > 0 ? queue.Write(from, bytes, **to, 0) : OkStatus();
  };
  const int64_t cell = BytesOf(entries.element_type());
  const char* const values = entries.element_type() == ElementType::kFloat32
                                 ? reinterpret_cast<const char*>(entries.values<float>())
                                 : reinterpret_cast<const char*>(entries.values());
  HEDDLE_RETURN_IF_ERROR(copy(values + first * cell, count * cell, &there.values));
  HEDDLE_RETURN_IF_ERROR(copy(entries.column_indexes() + first, count * 4, &there.columns));
  HEDDLE_RETURN_IF_ERROR(copy(offsets->data(), (entries.rows() + 1) * 8, &there.offsets));
  HEDDLE_RETURN_IF_ERROR(queue.WhenDone([entries, offsets](const Status&) {}));
  return there;
}

PlaceOnDevice PlaceOf(const Matrix& matrix) {
  const CellsOnDevice& cells = CellsOf(matrix);
  return {cells.memory(), matrix.first_row() * matrix.columns()};
}

ComputeDevice& DeviceOf(const Matrix& matrix) { return CellsOf(matrix).compute_device(); }

}  // namespace heddle::ops
