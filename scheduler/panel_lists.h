// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/programs/plan.h"
#include "ops/base/stages.h"
#include "scheduler/panel_roles.h"

namespace heddle::scheduler {

/// What the nodes have of result `result` of a task that reduces rows: of units without count where lists can
/// not be joined on their way (ops/reduction/joined_lists.h).
ops::PayloadUnits UnitsOfLists(const Graph& graph, const Task& task, size_t result);

/// Bytes of what a pass makes for one reduction of a value with `total` rows.
struct PayloadBytes {
  int64_t of_list = 0;  ///< The list of one panel.
  int64_t held = 0;     ///< What joins the lists of all panels has at once, and works with.
};
PayloadBytes PayloadBytesOf(const PanelRegion& region, int64_t total, const ops::PayloadUnits& units);

/// Fills Register::bytes of the lists of tree nodes that the tasks of a plan hand on, those of a rank's rows
/// together, where units tell how large they are.
void CountLists(Plan* plan);

/// About what an act of a task that reduces rows holds of payloads beside its operands and its list, on so
/// many threads, in bytes; 0 of other tasks.
double PayloadsAtWork(const Plan& plan, const Task& task, int threads);

}  // namespace heddle::scheduler
