// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "actor/runtime.h"
#include "core/programs/plan.h"
#include "core/recently_used.h"
#include "engine/session/statistics.h"

namespace heddle::engine {

/// Adds what the tasks of plans did to the statistics of a session. What one act of a task counts for is
/// found once for a plan, and remembered.
class TaskCounts {
 public:
  /// `statistics` outlives it.
  explicit TaskCounts(SessionStatistics* statistics) : statistics_(*statistics) {}
  /// Adds a run of the plan, of which `tasks` says what each task of this rank did.
  void Add(const std::shared_ptr<const Plan>& plan, std::span<const actor::TaskStatistics> tasks);

 private:
  struct Act {
    OperatorStatistics* counts = nullptr;  ///< nullptr: of no operator.
    int64_t bytes = 0;                     ///< Read and written.
    int64_t rows = 0;  ///< Of the whole result; more than there are where the task makes a part for sure.
    bool moves_matrices = false;
  };
  struct OfPlan {
    std::weak_ptr<const Plan> plan;  ///< Another plan may have come to have its key.
    std::vector<Act> acts;           ///< By task.
  };
  const std::vector<Act>& ActsOf(const std::shared_ptr<const Plan>& plan,
                                 std::span<const actor::TaskStatistics> tasks);

  SessionStatistics& statistics_;
  RecentlyUsedMap<uint64_t, OfPlan> by_key_{256};
};

}  // namespace heddle::engine
