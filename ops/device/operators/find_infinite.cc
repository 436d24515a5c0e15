// SPDX-License-Identifier: Apache-2.0
#include "ops/device/operators/find_infinite.h"

#include <cstdint>
#include <string_view>

#include "ops/device/device_matrix.h"
#include "ops/device/operators/device_commands.h"

namespace heddle::ops {
namespace {

constexpr std::string_view kFindInfinite = R"(
__kernel void heddle_find_infinite(const long first, const long cells, __global const CELL* x,
                                   __global int* found) {
  int is_here = 0;
  for (long i = (long)get_global_id(0); i < cells; i += (long)get_global_size(0))
    is_here |= !isfinite(x[first + i]);
  if (is_here) found[0] = 1;
}
)";

constexpr int32_t kNone = 0;

}  // namespace

Result<std::shared_ptr<DeviceMemory>> FindInfinite(const Matrix& matrix, ComputeDevice& device,
                                                   DeviceQueue& queue) {
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<DeviceMemory> found, device.Allocate(sizeof(kNone)));
  HEDDLE_RETURN_IF_ERROR(queue.Write(&kNone, sizeof(kNone), *found, 0));
  const PlaceOnDevice place = PlaceOf(matrix);
  const DeviceArgument arguments[] = {place.first_cell, matrix.cells(), place.memory, found};
  DeviceCommands commands(device, queue, nullptr);
  if (matrix.cells() > 0)
    HEDDLE_RETURN_IF_ERROR(commands.Launch(OverCells(matrix.element_type(), kFindInfinite),
                                           "heddle_find_infinite", arguments,
                                           commands.ShapeOfCells(matrix.cells())));
  return found;
}

}  // namespace heddle::ops
