// SPDX-License-Identifier: Apache-2.0
#include "scheduler/passes/plan_passes.h"

#include <algorithm>
#include <span>

#include "core/programs/task_places.h"

namespace heddle::scheduler {
namespace {

bool Spreads(const Task& task) {
  return task.count > 1 || task.kind == TaskKind::kRepeat || task.kind == TaskKind::kUnpack;
}
bool Collects(const Task& task) { return task.kind == TaskKind::kAccumulate || task.kind == TaskKind::kPack; }

}  // namespace

std::vector<PlanPass> PassesOf(const Plan& plan, size_t first, size_t last) {
  const std::span<const Task> tasks = std::span(plan.tasks).subspan(first, last - first);
  std::vector<PlanPass> passes;
  if (std::none_of(tasks.begin(), tasks.end(), Spreads)) return passes;
  const TaskPlaces places(tasks);
  std::vector<int64_t> acts(tasks.size(), 1);
  bool continues = false;  // The task before is of the last pass.
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    acts[i] = task.count;
    for (const auto* list : {&task.consumed, &task.control_in})
      for (const RegisterId id : *list) {
        const size_t producer =
            id < 0 ? TaskPlaces::kNone : places.Of(plan.registers[static_cast<size_t>(id)].producer);
        if (producer == TaskPlaces::kNone || producer >= i) continue;
        const Task& maker = tasks[producer];
        const int64_t made = Collects(maker) ? acts[producer] / maker.rate : acts[producer];
        acts[i] = std::max(acts[i], made);
      }
    if (task.kind == TaskKind::kRepeat || task.kind == TaskKind::kUnpack) acts[i] *= task.rate;
    if (acts[i] == 1) {
      continues = false;
      continue;
    }
    if (!continues || (Collects(tasks[i - 1]) && Spreads(task))) passes.push_back({.begin = i});
    continues = true;
    PlanPass& pass = passes.back();
    pass.end = i + 1;
    pass.acts = std::max(pass.acts, acts[i]);
    if (Spreads(task)) pass.starts.push_back(i);
    if (Collects(task)) pass.ends.push_back(i);
  }
  return passes;
}

TaskRange TasksOfRank(const Plan& plan, int32_t rank) {
  const auto of_rank = [rank](const Task& task) { return task.id.rank() == static_cast<uint32_t>(rank); };
  const auto first = std::find_if(plan.tasks.begin(), plan.tasks.end(), of_rank);
  const auto last = std::find_if_not(first, plan.tasks.end(), of_rank);
  return {static_cast<size_t>(first - plan.tasks.begin()), static_cast<size_t>(last - plan.tasks.begin())};
}

}  // namespace heddle::scheduler
