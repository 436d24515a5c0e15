// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/programs/plan.h"
#include "ops/base/machine_constants.h"
#include "scheduler/devices/device_options.h"

namespace heddle::scheduler {

struct ScheduleOptions {
  int32_t ranks = 1;
  /// A matrix smaller than this stays whole on rank 0 unless it meets a larger one row by row. 0 splits
  /// everything.
  int64_t min_distributed_bytes = int64_t{8} << 20;
  int64_t memory_bytes = 0;                                    ///< Budget of a rank; 0: unlimited.
  ops::MachineConstants constants = ops::BuiltInConstants(1);  ///< How long tasks take goes by them.
  /// Where assigned variables are to be; those left out stay where they come out. No scalars.
  std::map<std::string, Distribution> live_out;
  /// Large values pass through the plan in panels (scheduler/panel_plan.h), as high as the memory lets them.
  bool in_panels = false;
  bool leaves_panels = true;       ///< Assigned values may be panels; else they are put together at the end.
  int64_t panel_bytes = 0;         ///< Of a pass, and values of any size are in panels; 0: as memory is.
  std::set<std::string> panelled;  ///< Live-ins that are panels; there are none in a plan without panels.
  /// Of CSR live-ins of a plan in panels or with a device, as ops::MostEntries (ops/panels/entry_counts.h)
  /// counts them; one rank.
  std::map<std::string, std::vector<int64_t>> most_entries;
  std::optional<DeviceOptions> device;  ///< Of every rank, beside the processor.
};
/// From which size values are in panels, in a plan with panels.
int64_t LeastPanelledBytes(int64_t memory_bytes);

/// Places every node of `graph` (all shapes known) and emits tasks, registers and boxing for all ranks.
///
/// `live_in` gives the distribution of every "variable" node by name (scalars are kEach).
/// Errors: kResourceExhausted when a rank would need more than memory_bytes, naming the largest register;
///         kInternal if the plan is not live (our bug).
Result<Plan> Schedule(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                      const ScheduleOptions& options);

}  // namespace heddle::scheduler
