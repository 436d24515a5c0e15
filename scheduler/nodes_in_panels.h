// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/programs/plan.h"
#include "scheduler/devices/choose_device.h"
#include "scheduler/panel_plan.h"

namespace heddle::scheduler {

/// By node of the graph of `plan`: what InPanels makes of its tasks with these options, on the first rank
/// that has some of them.
///
/// Needs: tasks as PlanBuilder makes them, wherever they run.
std::vector<NodeInPanels> NodesInPanels(const Plan& plan, const PanelOptions& options);

}  // namespace heddle::scheduler
