// SPDX-License-Identifier: Apache-2.0
#include "ops/device/device_matrix.h"

#include <utility>
#include <vector>

#include "ops/cells/storage.h"
#include "ops/elementwise/elementwise_sparse.h"

namespace heddle::ops {

// All matrices on a device have been made here.
const CellsOnDevice& CellsOf(const Matrix& matrix) {
  return static_cast<const CellsOnDevice&>(matrix.device_cells());
}

int64_t CellsOnDevice::bytes() const {
  if (!entries_) return shape_.rows * shape_.columns * BytesOf(element_type_);
  return entries_->count * (BytesOf(element_type_) + 4) + (shape_.rows + 1) * 8;
}

Result<Matrix> CellsOnDevice::Read(int64_t begin, int64_t end, DeviceQueue& queue) const {
  HEDDLE_RETURN_IF_ERROR(WaitIn(queue));
  const auto read = [&](const DeviceMemory& from, int64_t offset, int64_t bytes, void* to) {
    return bytes > 0 ? queue.Read(from, offset, bytes, to) : OkStatus();
  };
  const int64_t cell = BytesOf(element_type_);
  Matrix cells;
  Status status;
  if (!entries_) {
    HEDDLE_ASSIGN_OR_RETURN(cells, Matrix::Dense(end - begin, shape_.columns, element_type_));
    const int64_t row_bytes = shape_.columns * cell;
    status = read(*memory_, begin * row_bytes, (end - begin) * row_bytes, cells.mutable_data<char>());
  } else {
    HEDDLE_ASSIGN_OR_RETURN(cells,
                            Matrix::Sparse(shape_.rows, shape_.columns, entries_->count, element_type_));
    const int64_t count = entries_->count;
    status = read(*entries_->offsets, 0, (shape_.rows + 1) * 8, cells.mutable_row_offsets());
    if (status.ok()) status = read(*entries_->columns, 0, count * 4, cells.mutable_column_indexes());
    if (status.ok()) status = read(*entries_->values, 0, count * cell, cells.mutable_values<char>());
    cells = cells.Rows(begin, end);
  }
  // What was queued before something failed may write to them yet.
  if (!status.ok() && !queue.WhenDone([cells](const Status&) {}).ok()) static_cast<void>(queue.Finish());
  HEDDLE_RETURN_IF_ERROR(status);
  return cells;
}

Status CellsOnDevice::Lost(const Status& why) const {
  return Unavailable("a {} matrix was only in the memory of the device {}, and is lost with it ({}); run "
                     "again with --devices cpu",
                     shape_, device_.description().name, why.message());
}

Result<Matrix> CellsOnDevice::ToHost(int64_t begin, int64_t end) const {
  if (original_) return original_->Rows(begin, end);
  const auto read = [&]() -> Result<Matrix> {
    HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceQueue> queue, device_.MakeQueue());
    Result<Matrix> cells = Read(begin, end, *queue);
    const Status finished = queue->Finish();
    if (cells.ok() && !finished.ok()) return finished;
    return cells;
  };
  Result<Matrix> cells = read();
  if (cells.status().code() == StatusCode::kUnavailable) return Lost(cells.status());
  HEDDLE_RETURN_IF_ERROR(cells.status());
  return WithoutZeros(*std::move(cells));
}

Result<std::shared_ptr<const CellsOnDevice>> MakeOnDevice(ComputeDevice& device, Shape shape,
                                                          ElementType type) {
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<DeviceMemory> memory,
                          device.Allocate(shape.rows * shape.columns * BytesOf(type)));
  return std::shared_ptr<const CellsOnDevice>(
      std::make_shared<CellsOnDevice>(device, std::move(memory), shape, type));
}

namespace {

bool IsThere(const Matrix& matrix, ComputeDevice& device) {
  return matrix.IsOnDevice() && CellsOf(matrix).device() == device.description().device;
}

}  // namespace

Result<Matrix> ToDevice(const Matrix& matrix, ComputeDevice& device, DeviceQueue& queue) {
  if (IsThere(matrix, device)) {
    if (CellsOf(matrix).IsSparse()) return Unimplemented("on a device: dense cells of a CSR matrix");
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

Result<Matrix> EntriesToDevice(const Matrix& matrix, ComputeDevice& device, DeviceQueue& queue) {
  if (IsThere(matrix, device)) {
    const CellsOnDevice& cells = CellsOf(matrix);
    if (!cells.IsSparse()) return Unimplemented("on a device: entries of a dense matrix");
    if (matrix.rows() != cells.rows()) return Unimplemented("on a device: some rows of a CSR matrix");
    HEDDLE_RETURN_IF_ERROR(cells.WaitIn(queue));
    return matrix;
  }
  HEDDLE_ASSIGN_OR_RETURN(const Matrix host, ToHost(matrix));
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
  const Status copied = [&]() -> Status {
    HEDDLE_RETURN_IF_ERROR(copy(values + first * cell, count * cell, &there.values));
    HEDDLE_RETURN_IF_ERROR(copy(entries.column_indexes() + first, count * 4, &there.columns));
    return copy(offsets->data(), (entries.rows() + 1) * 8, &there.offsets);
  }();
  // Also where there was no room for all arrays: what is queued reads and writes those before.
  if (const Status status = queue.WhenDone([entries, offsets, there](const Status&) {}); !status.ok()) {
    static_cast<void>(queue.Finish());
    return status;
  }
  HEDDLE_RETURN_IF_ERROR(copied);
  return Matrix::OfDeviceCells(std::make_shared<CellsOnDevice>(device, std::move(there), entries.shape(),
                                                               entries.element_type()));
}

Result<Matrix> SameEntriesOnDevice(const Matrix& matrix, ElementType type) {
  const CellsOnDevice& cells = CellsOf(matrix);
  EntriesOnDevice entries = cells.entries();
  HEDDLE_ASSIGN_OR_RETURN(entries.values, cells.compute_device().Allocate(entries.count * BytesOf(type)));
  return Matrix::OfDeviceCells(
      std::make_shared<CellsOnDevice>(cells.compute_device(), std::move(entries), matrix.shape(), type));
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
  return CellsOf(matrix).Read(matrix.first_row(), matrix.first_row() + matrix.rows(), queue);
}

Result<Matrix> WithoutZeros(Matrix matrix) {
  if (!matrix.IsSparse() || matrix.CountNonzeros() == matrix.stored()) return matrix;
  if (matrix.element_type() == ElementType::kFloat64) return DropZeros(matrix);
  HEDDLE_ASSIGN_OR_RETURN(const Matrix widened, ToElementType(matrix, ElementType::kFloat64));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix entries, DropZeros(widened));
  return ToElementType(entries, ElementType::kFloat32);
}

}  // namespace heddle::ops
