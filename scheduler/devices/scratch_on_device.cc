// SPDX-License-Identifier: Apache-2.0
#include "scheduler/devices/scratch_on_device.h"

#include <algorithm>
#include <vector>

#include "core/programs/input_infos.h"
#include "ops/device/run/run_on_device.h"

namespace heddle::scheduler {
namespace {

// Rows of the matrix whose rows an act walks; -1: all that there are. Those of a whole reduction are other
// ones: of its result.
int64_t RowsOf(const Task& task) {
  if (task.panel_rows > 0) return task.panel_rows;
  return task.phase == Phase::kPartial && task.axis == Axis::kRows ? task.row_end - task.row_begin : -1;
}

}  // namespace

int64_t ScratchOnDevice(const Plan& plan, const ops::DeviceDescription& device) {
  int64_t most = 0;
  for (const Task& task : plan.tasks) {
    const bool computes = task.phase == Phase::kWhole || task.phase == Phase::kPartial;
    if (!(task.id.device() == device.device) || task.node == kNoNode || !computes) continue;
    const Node& node = plan.graph[task.node];
    const std::vector<ValueInfo> inputs = InputInfos(plan.graph, node);
    if (!ops::DeviceOperators::CanRun(node, inputs).ok()) continue;
    most = std::max(most,
                    ops::DeviceOperators::ScratchBytes(node, inputs, task.phase, RowsOf(task), device));
  }
  return most;
}

}  // namespace heddle::scheduler
