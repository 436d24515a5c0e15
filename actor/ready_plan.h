// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actor/launch_estimate.h"
#include "actor/plan_instance.h"
#include "actor/runtime.h"
#include "actor/task_body.h"
#include "core/programs/frames_of_plan.h"
#include "core/recently_used.h"

namespace heddle::actor {

/// What one rank has of a plan between runs, ready for the next one: actors and routes, and no values.
struct ReadyPlan {
  std::unique_ptr<PlanInstance> instance;
  std::unique_ptr<KernelBody> body;
  std::vector<TaskStatistics> statistics;  ///< node and phase filled in, numbers zero.
  std::vector<LaunchEstimate> estimates;   ///< By actor number, corrected by every act.
  std::vector<uint32_t> sites;             ///< By actor number, where acts are recorded,
  std::vector<int32_t> lines;              ///< and where progress is told (recorded_sites.h).
  int64_t cost_ns = 0;                     ///< What all acts of this rank take, as the plan states it.
};

/// By key. A plan without a key (0) is found only as the same object. Plans of very wide frames, whose names
/// take much memory, make room for each other.
class ReadyPlans {
 public:
  /// nullptr when the plan is not there.
  ReadyPlan* Find(const Plan& plan) {
    ReadyPlan* const found = by_key_.Find(plan.key);
    return found == nullptr || (plan.key == 0 && &found->instance->plan() != &plan) ? nullptr : found;
  }
  ReadyPlan* Add(ReadyPlan ready) {
    const Plan& plan = ready.instance->plan();
    const int64_t columns = ColumnsOfFrames(plan);
    return &by_key_.Add(plan.key, std::move(ready), columns);
  }

 private:
  RecentlyUsedMap<uint64_t, ReadyPlan> by_key_{256, kMostColumnsOfPlans};
};

}  // namespace heddle::actor
