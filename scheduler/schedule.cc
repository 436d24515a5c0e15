// SPDX-License-Identifier: Apache-2.0
#include "scheduler/schedule.h"

#include "scheduler/estimate.h"
#include "scheduler/liveness.h"
#include "scheduler/place.h"
#include "scheduler/plan_builder.h"
#include "scheduler/plan_memory.h"

namespace heddle::scheduler {

Result<Plan> Schedule(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                      const ScheduleOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Placement> placements, Place(graph, live_in, options));
  Plan plan = PlanBuilder(graph, placements, options.ranks).Build();
  for (Task& task : plan.tasks) task.cost_ns = EstimateNs(plan.graph, task, options.constants);
  HEDDLE_RETURN_IF_ERROR(AssignSlots(&plan));
  PlanMemory(&plan);
  HEDDLE_DEBUG_CHECK(CheckLive(plan).ok(), "guard edges follow plan order, so the plan stays live");
  HEDDLE_RETURN_IF_ERROR(CheckMemory(plan, options.memory_bytes));
  HEDDLE_RETURN_IF_ERROR(Verify(plan));
  return plan;
}

}  // namespace heddle::scheduler
