// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "core/programs/plan.h"

namespace heddle {

/// The stages of a node; nullptr where it has none.
inline const StagedNode* FindStaged(const Plan& plan, NodeId node) {
  const auto found = std::lower_bound(plan.staged.begin(), plan.staged.end(), node,
                                      [](const StagedNode& staged, NodeId id) { return staged.node < id; });
  return found == plan.staged.end() || found->node != node ? nullptr : &*found;
}

}  // namespace heddle
