// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/task_counts.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "actor/recorded_sites.h"
#include "core/programs/fused_operator.h"
#include "engine/blocks/bytes_moved.h"

namespace heddle::engine {
namespace {

// Whether the bytes of a task count as the operator's. Fused operators and those of phases count for
// themselves.
bool CountsBytes(const Plan& plan, const actor::TaskStatistics& task) {
  const Node& node = plan.graph[task.node];
  return (task.phase == Phase::kWhole || task.phase == Phase::kPartial) && !node.Is("variable") &&
         !node.Is("assign") && !IsFused(node) && !node.Is("phased");
}

}  // namespace

TaskCounts::OfPlan& TaskCounts::ActsOf(const std::shared_ptr<const Plan>& plan,
                                       std::span<const actor::TaskStatistics> tasks) {
  if (OfPlan* const found = by_key_.Find(plan->key); found != nullptr && found->plan.lock() == plan)
    return *found;
  OfPlan made{.plan = plan};
  for (const actor::TaskStatistics& task : tasks) {
    Act& act = made.acts.emplace_back();
    if (task.node == kNoNode) continue;
    const Node& node = plan->graph[task.node];
    const bool whole = task.phase == Phase::kWhole;
    act.counts = &statistics_.operators[whole ? node.op : fmt::format("{}.{}", node.op, Name(task.phase))];
    if (CountsBytes(*plan, task)) act.bytes = BytesMoved(plan->graph, task.node);
    const ValueInfo& first = ResultsOf(node)[0];
    if (whole && task.kind != TaskKind::kCopy &&
        std::binary_search(plan->whole.begin(), plan->whole.end(), task.node))
      act.whole = &statistics_.ran_whole[fmt::format("{} in line {}", node.op, node.position.line)];
    act.rows = !whole ? std::numeric_limits<int64_t>::max() : first.IsTabular() ? first.shape.rows : 0;
    act.moves_matrices = task.phase != Phase::kFinish && MovesMatrices(plan->graph, task.node);
  }
  return by_key_.Add(plan->key, std::move(made));
}

void TaskCounts::FindPlaces(std::span<const actor::TaskStatistics> tasks, const OpenCalls& calls,
                            OfPlan* of_plan) {
  const std::shared_ptr<const Plan> plan = of_plan->plan.lock();
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].node == kNoNode) continue;
    Act& act = of_plan->acts[i];
    act.place = &statistics_.PlaceOf(actor::TaskName(*plan, tasks[i].node, tasks[i].phase),
                                     plan->graph[tasks[i].node].position, *calls);
    if (MovesMatrices(plan->graph, tasks[i].node))
      act.bytes_at_place = BytesMoved(plan->graph, tasks[i].node);
  }
  of_plan->calls = calls;
}

void TaskCounts::AddToPlace(const actor::TaskStatistics& task, const Act& act) {
  statistics_.operators_ns += task.kernel_ns;
  act.place->acts += task.acts;
  act.place->ns += task.kernel_ns;
  act.place->rows += task.rows;
  act.place->bytes += task.acts * act.bytes_at_place;
}

void TaskCounts::Add(const std::shared_ptr<const Plan>& plan, std::span<const actor::TaskStatistics> tasks,
                     const OpenCalls& calls) {
  OfPlan& of_plan = ActsOf(plan, tasks);
  if (calls != nullptr && of_plan.calls != calls) FindPlaces(tasks, calls, &of_plan);
  const std::vector<Act>& acts = of_plan.acts;
  for (size_t i = 0; i < acts.size(); ++i) {
    const Act& act = acts[i];
    const actor::TaskStatistics& task = tasks[i];
    if (act.counts == nullptr || task.acts == 0) continue;
    if (calls != nullptr) AddToPlace(task, act);
    act.counts->acts += task.acts;
    if (act.whole != nullptr) *act.whole += task.acts;
    act.counts->kernel_ns += task.kernel_ns;
    act.counts->rows += task.rows;
    act.counts->bytes_in += task.bytes_in;
    // Of the rows of all ranks, these are some.
    const bool is_part = task.rows / task.acts < act.rows;
    statistics_.bytes_moved += task.acts * act.bytes / (is_part ? plan->ranks : 1);
    if (act.moves_matrices) statistics_.matrix_operators += task.acts;
    if (plan->ranks > 1) statistics_.rows_held = std::max(statistics_.rows_held, task.rows / task.acts);
  }
}

}  // namespace heddle::engine
