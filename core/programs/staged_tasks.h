// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "core/programs/plan.h"

namespace heddle {

/// How the ranks share out a node that is computed in stages; nullptr where it is not.
inline const StagedNode* FindStaged(const Plan& plan, NodeId node) {
  const auto found = std::lower_bound(plan.staged.begin(), plan.staged.end(), node,
                                      [](const StagedNode& staged, NodeId id) { return staged.node < id; });
  return found == plan.staged.end() || found->node != node ? nullptr : &*found;
}

/// Whether several ranks compute the node panel by panel: its rows have more parts than there are ranks, as
/// many for each (ops/panels/staged_run.h).
inline bool IsSharedInPanels(const Plan& plan, const StagedNode& staged) {
  return plan.ranks > 1 && staged.rows.cuts.size() > static_cast<size_t>(plan.ranks) + 1;
}

/// Whether the task computes a stage for several panels of its rank.
inline bool IsStageInPanels(const Plan& plan, const Task& task) {
  if (task.phase != Phase::kStage || task.kind != TaskKind::kCompute) return false;
  const StagedNode* const staged = FindStaged(plan, task.node);
  return staged != nullptr && IsSharedInPanels(plan, *staged);
}

}  // namespace heddle
