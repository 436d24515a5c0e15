// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actor/launch_estimate.h"
#include "actor/plan_instance.h"
#include "actor/runtime.h"
#include "actor/task_body.h"
#include "core/programs/frames_of_plan.h"

namespace heddle::actor {

/// All that one rank keeps of a plan between runs.
struct ReadyPlan {
  std::unique_ptr<PlanInstance> instance;
  std::unique_ptr<KernelBody> body;
  std::vector<TaskStatistics> statistics;  ///< node and phase filled in, numbers zero.
  std::vector<LaunchEstimate> estimates;   ///< By actor number, corrected by every act.
  int64_t columns = 0;                     ///< Of the frames of the plan.
};

/// The plans that ran last, by key, but for those of very wide frames, which make room for each other. Holds
/// no values, only actors and routes. Not thread-safe.
class PlanCache {
 public:
  explicit PlanCache(size_t capacity) : capacity_(capacity) {}

  /// nullptr when the plan is not there. A plan without key (0) is found only as the same object.
  ReadyPlan* Find(const Plan& plan) {
    const auto found = by_key_.find(plan.key);
    if (found == by_key_.end()) return nullptr;
    if (plan.key == 0 && &found->second->instance->plan() != &plan) return nullptr;
    plans_.splice(plans_.begin(), plans_, found->second);
    return &plans_.front();
  }

  /// Keeps `ready`, and drops the one that was used longest ago when there are too many.
  ReadyPlan* Insert(ReadyPlan ready) {
    const uint64_t key = ready.instance->plan().key;
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      columns_ -= found->second->columns;
      plans_.erase(found->second);
      by_key_.erase(found);
    }
    ready.columns = ColumnsOfFrames(ready.instance->plan());
    columns_ += ready.columns;
    plans_.push_front(std::move(ready));
    by_key_[key] = plans_.begin();
    while (plans_.size() > capacity_ || (columns_ > kMostColumnsOfPlans && plans_.size() > 1)) {
      columns_ -= plans_.back().columns;
      by_key_.erase(plans_.back().instance->plan().key);
      plans_.pop_back();
    }
    return &plans_.front();
  }

  size_t size() const { return plans_.size(); }

 private:
  size_t capacity_;
  int64_t columns_ = 0;
  std::list<ReadyPlan> plans_;  ///< The one used last comes first.
  std::unordered_map<uint64_t, std::list<ReadyPlan>::iterator> by_key_;
};

}  // namespace heddle::actor
