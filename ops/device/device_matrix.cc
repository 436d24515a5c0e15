// SPDX-License-Identifier: Apache-2.0
#include "ops/device/device_matrix.h"

#include <utility>
#include <vector>

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
