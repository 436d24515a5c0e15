// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/programs/plan.h"

namespace heddle::scheduler {

/// Tasks of a rank that follow each other in the plan and act more than once: all of them are at work at the
/// same time. Places are counted from the first task of the rank.
struct PlanPass {
  size_t begin = 0, end = 0;         ///< Tasks [begin, end).
  int64_t acts = 0;                  ///< Of the task that acts most often: panels.
  std::vector<size_t> starts, ends;  ///< What spreads (a source, kRepeat, kUnpack) and what collects
                                     ///< (kAccumulate, kPack).
};

/// The passes of the rank whose tasks are [first, last) of the plan, in their order; none where every task
/// acts once.
std::vector<PlanPass> PassesOf(const Plan& plan, size_t first, size_t last);

/// The tasks of a rank: [first, last) of the plan.
struct TaskRange {
  size_t first = 0, last = 0;
};
TaskRange TasksOfRank(const Plan& plan, int32_t rank);

}  // namespace heddle::scheduler
