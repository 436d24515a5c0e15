// SPDX-License-Identifier: Apache-2.0
#include "ops/device/run/task_launches.h"

#include <algorithm>

#include "ops/base/machine_constants.h"
#include "ops/base/operator.h"
#include "ops/device/device_matrix.h"
#include "ops/device/operators/product.h"

namespace heddle::ops {

int64_t WorkGroupsOf(int64_t tasks, const DeviceDescription& device) {
  constexpr int64_t kGroupsPerUnit = 8;
  return std::clamp<int64_t>(tasks, 1, device.compute_units * kGroupsPerUnit);
}

double WorkOf(const KernelCall& call, int driver) {
  constexpr double kBytesOfWork = 8, kCellsOfEntry = 8;
  const Cost cost = CostOf(call.node, call.input_infos);
  const Matrix& matrix = call.inputs[static_cast<size_t>(driver)]->matrix();
  const auto all = static_cast<double>(call.input_infos[static_cast<size_t>(driver)].shape.Cells());
  auto cells = static_cast<double>(matrix.cells());
  if (matrix.IsSparse() || (matrix.IsOnDevice() && CellsOf(matrix).IsSparse())) {
    const int64_t entries = matrix.IsSparse() ? matrix.stored() : CellsOf(matrix).entries().count;
    const auto rows = static_cast<double>(matrix.rows());
    cells = std::min(cells, kCellsOfEntry * static_cast<double>(entries) + rows);
  }
  return std::max(cost.work, cost.bytes / kBytesOfWork) * (all > cells ? cells / all : 1);
}

TaskLaunches TaskLaunches::Of(int64_t tasks, double work, const DeviceDescription& device) {
  constexpr double kOperationsOfWork = 2 / kWorkOfMultiplyAdd;
  const double launches =
      kOperationsOfWork * work / static_cast<double>(ProductLimits::Of(device).work_of_launch);
  if (launches <= 1 || tasks <= 1) return {.tasks = tasks, .at_once = std::max<int64_t>(tasks, 1)};
  // All work-groups of a launch have as many tasks.
  const int64_t groups = WorkGroupsOf(tasks, device);
  const auto fitting = static_cast<int64_t>(static_cast<double>(tasks) / launches);
  return {.tasks = tasks, .at_once = std::min(tasks, std::max<int64_t>(1, fitting / groups) * groups)};
}

}  // namespace heddle::ops
