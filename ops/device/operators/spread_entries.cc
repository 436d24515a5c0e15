// SPDX-License-Identifier: Apache-2.0
#include "ops/device/operators/spread_entries.h"

#include <cstdint>
#include <memory>

#include "ops/device/device_matrix.h"
#include "ops/device/operators/device_commands.h"

namespace heddle::ops {
namespace {

// A work-item has a row.
constexpr std::string_view kSpread = R"(
__kernel void heddle_spread(const long first, const long rows, const long row_cells,
                            __global const CELL* values, __global const int* columns,
                            __global const long* offsets, __global CELL* to) {
  for (long i = (long)get_global_id(0); i < rows; i += (long)get_global_size(0)) {
    for (long j = 0; j < row_cells; ++j) to[i * row_cells + j] = 0;
    for (long e = offsets[first + i]; e < offsets[first + i + 1]; ++e)
      to[i * row_cells + columns[e]] = values[e];
  }
}
)";

}  // namespace

Result<Matrix> SpreadEntries(const Matrix& matrix, ComputeDevice& device, DeviceQueue& queue) {
  const CellsOnDevice& cells = CellsOf(matrix);
  HEDDLE_RETURN_IF_ERROR(cells.WaitIn(queue));
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const CellsOnDevice> dense,
                          MakeOnDevice(device, matrix.shape(), matrix.element_type()));
  const EntriesOnDevice& entries = cells.entries();
  const DeviceArgument arguments[] = {matrix.first_row(), matrix.rows(),   matrix.columns(), entries.values,
                                      entries.columns,    entries.offsets, dense->memory()};
  DeviceCommands commands(device, queue, nullptr);
  if (matrix.cells() > 0)
    HEDDLE_RETURN_IF_ERROR(commands.Launch(OverBits(matrix.element_type(), kSpread), "heddle_spread",
                                           arguments, commands.ShapeOfCells(matrix.rows())));
  return Matrix::OfDeviceCells(dense);
}

}  // namespace heddle::ops
