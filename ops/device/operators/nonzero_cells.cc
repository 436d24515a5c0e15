// SPDX-License-Identifier: Apache-2.0
#include "ops/device/operators/nonzero_cells.h"

#include <string_view>
#include <utility>

#include "ops/device/device_matrix.h"
#include "ops/device/operators/device_commands.h"
#include "ops/device/operators/row_offsets.h"

namespace heddle::ops {
namespace {

// A work-item has a row.
constexpr std::string_view kNonzeros = R"(
__kernel void heddle_count_nonzeros(const long first, const long rows, const long row_cells,
                                    __global const CELL* x, __global long* offsets) {
  for (long i = (long)get_global_id(0); i < rows; i += (long)get_global_size(0)) {
    long count = 0;
    for (long j = 0; j < row_cells; ++j) count += x[first + i * row_cells + j] != 0;
    offsets[i + 1] = count;
  }
}
__kernel void heddle_take_nonzeros(const long first, const long rows, const long row_cells,
                                   __global const CELL* x, __global const long* offsets,
                                   __global CELL* values, __global int* columns) {
  for (long i = (long)get_global_id(0); i < rows; i += (long)get_global_size(0)) {
    long e = offsets[i];
    for (long j = 0; j < row_cells; ++j) {
      const CELL cell = x[first + i * row_cells + j];
      if (cell != 0) {
        values[e] = cell;
        columns[e] = (int)j;
        ++e;
      }
    }
  }
}
)";

}  // namespace

Result<std::unique_ptr<NonzeroCells>> NonzeroCells::Count(Matrix matrix, ComputeDevice& device,
                                                          DeviceQueue& queue) {
  std::unique_ptr<NonzeroCells> cells(new NonzeroCells(std::move(matrix), device));
  const Matrix& x = cells->matrix_;
  HEDDLE_ASSIGN_OR_RETURN(cells->offsets_, device.Allocate((x.rows() + 1) * 8));
  const PlaceOnDevice place = PlaceOf(x);
  const DeviceArgument arguments[] = {place.first_cell, x.rows(), x.columns(), place.memory, cells->offsets_};
  DeviceCommands commands(device, queue, nullptr);
  HEDDLE_RETURN_IF_ERROR(commands.Launch(OverCells(x.element_type(), kNonzeros), "heddle_count_nonzeros",
                                         arguments, commands.ShapeOfCells(x.rows())));
  HEDDLE_RETURN_IF_ERROR(AddUpRows(commands, x.rows(), cells->offsets_));
  HEDDLE_RETURN_IF_ERROR(queue.Read(*cells->offsets_, x.rows() * 8, 8, &cells->count_));
  return cells;
}

Result<Matrix> NonzeroCells::Make(DeviceQueue& queue) const {
  const ElementType type = matrix_.element_type();
  EntriesOnDevice entries{.offsets = offsets_, .count = count_};
  HEDDLE_ASSIGN_OR_RETURN(entries.values, device_.Allocate(count_ * BytesOf(type)));
  HEDDLE_ASSIGN_OR_RETURN(entries.columns, device_.Allocate(count_ * 4));
  const PlaceOnDevice place = PlaceOf(matrix_);
  const DeviceArgument arguments[] = {place.first_cell, matrix_.rows(),  matrix_.columns(), place.memory,
                                      offsets_,         entries.values, entries.columns};
  DeviceCommands commands(device_, queue, nullptr);
  if (count_ > 0)
    HEDDLE_RETURN_IF_ERROR(commands.Launch(OverCells(type, kNonzeros), "heddle_take_nonzeros", arguments,
                                           commands.ShapeOfCells(matrix_.rows())));
  return Matrix::OfDeviceCells(
      std::make_shared<CellsOnDevice>(device_, std::move(entries), matrix_.shape(), type));
}

}  // namespace heddle::ops
