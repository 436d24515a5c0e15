// SPDX-License-Identifier: Apache-2.0
#include "scheduler/schedule.h"

#include <algorithm>
#include <vector>

#include "scheduler/estimate.h"
#include "scheduler/liveness.h"
#include "scheduler/place.h"
#include "scheduler/plan_builder.h"
#include "scheduler/plan_memory.h"

namespace heddle::scheduler {
namespace {

// Whether several ranks have rows of the value; of one whose cuts nobody knows yet they may.
bool IsSpread(const Distribution& where, int32_t ranks) {
  if (!where.IsSplit() || where.split.cuts.empty()) return where.IsSplit();
  int32_t holders = 0;
  for (int32_t rank = 0; rank < ranks; ++rank) holders += where.split.End(rank) > where.split.Begin(rank);
  return holders > 1;
}

// Nodes that one rank computes although an operand is split over several.
std::vector<NodeId> WholeAlthoughSplit(const Graph& graph, const std::vector<Placement>& placements,
                                       int32_t ranks) {
  std::vector<NodeId> whole;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    const Placement& placement = placements[static_cast<size_t>(id)];
    if (placement.split || !placement.result.IsOne() || node.Is("assign") || node.Is("result")) continue;
    if (std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
          return input != kNoNode && IsSpread(placements[static_cast<size_t>(input)].result, ranks);
        }))
      whole.push_back(id);
  }
  return whole;
}

Result<Plan> PlanOf(const Graph& graph, const std::vector<Placement>& placements,
                    const ScheduleOptions& options) {
  Plan plan = PlanBuilder(graph, placements, options).Build();
  plan.whole = WholeAlthoughSplit(graph, placements, options.ranks);
  for (Task& task : plan.tasks) task.cost_ns = EstimateNs(plan.graph, task, options.constants);
  HEDDLE_RETURN_IF_ERROR(AssignSlots(&plan));
  PlanMemory(&plan);
  HEDDLE_DEBUG_CHECK(CheckLive(plan).ok(), "guard edges follow plan order, so the plan stays live");
  HEDDLE_RETURN_IF_ERROR(CheckMemory(plan, options.memory_bytes));
  HEDDLE_RETURN_IF_ERROR(Verify(plan));
  return plan;
}

}  // namespace

Result<Plan> Schedule(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                      const ScheduleOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Placement> placements, Place(graph, live_in, options));
  Result<Plan> plan = PlanOf(graph, placements, options);
  if (plan.ok() || options.kept.empty() || plan.status().code() != StatusCode::kResourceExhausted)
    return plan;
  // What does not fit with the copies that it would leave may fit without.
  ScheduleOptions without = options;
  without.kept.clear();
  return PlanOf(graph, placements, without);
}

}  // namespace heddle::scheduler
