// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/values/sizes.h"
#include "ops/base/operator.h"
#include "ops/base/stages.h"
#include "ops/panels/staged_run.h"
#include "scheduler/panel_plan.h"

namespace heddle::scheduler {

bool HoldsPanels(const Plan& plan, const Register& reg) {
  if (reg.control || reg.bytes > 0) return false;
  if (KnownBytes(reg.info) > 0) return true;
  const auto producer = std::find_if(plan.tasks.begin(), plan.tasks.end(),
                                     [&](const Task& task) { return task.id == reg.producer; });
  if (producer == plan.tasks.end() || producer->node == kNoNode) return false;
  if (producer->phase != Phase::kPanels) return false;
  const auto staged = std::find_if(plan.staged.begin(), plan.staged.end(),
                                   [&](const StagedNode& one) { return one.node == producer->node; });
  if (staged == plan.staged.end()) return true;
  const ops::Operator& op = *ops::FindOperator(plan.graph[producer->node].op);
  const auto result = std::find(producer->produced.begin(), producer->produced.end(), reg.id);
  return ops::IsCutByRows(*ops::StagedFormAt(op, staged->form),
                          static_cast<size_t>(result - producer->produced.begin()));
}

}  // namespace heddle::scheduler
