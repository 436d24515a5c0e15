// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actor/launch/launch_estimate.h"
#include "actor/plan_instance.h"
#include "actor/runtime.h"
#include "actor/task_body.h"
#include "core/programs/frames_of_plan.h"
#include "core/recently_used.h"

namespace heddle::actor {

/// A rank whose tasks take no longer than this together needs no second thread to answer messages meanwhile:
/// to wake one takes about as long.
constexpr int64_t kShortRunNs = 100'000;

/// What one rank has of a plan between runs, ready for the next one: actors and routes, and no values.
struct ReadyPlan {
  std::unique_ptr<PlanInstance> instance;
  std::unique_ptr<KernelBody> body;
  std::vector<TaskStatistics> statistics;  ///< node and phase filled in, numbers zero.
  std::vector<LaunchEstimate> estimates;   ///< By actor number, corrected by every act.
  std::vector<uint32_t> sites;             ///< By actor number, where acts are recorded,
  std::vector<int32_t> lines;              ///< and where progress is told (recorded_sites.h).
  int64_t cost_ns = 0;                     ///< What all acts of this rank take, as the plan states it.

  /// Whether all acts of this rank together are known to take less than kShortRunNs.
  bool IsShort() const {
    int64_t ns = 0;
    for (const Actor& actor : instance->actors()) {
      const bool is_pull = actor.task().kind == TaskKind::kCopy && !actor.edges().empty() &&
                           actor.edges()[0].source == nullptr;
      if (is_pull) continue;  // The link's work.
      const LaunchEstimate& estimate = estimates[actor.number()];
      if (!estimate.IsShort()) return false;
      ns += estimate.ns();
    }
    return ns <= kShortRunNs;
  }
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
