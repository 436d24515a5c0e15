// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "actor/runtime.h"
#include "core/programs/plan.h"
#include "core/recently_used.h"
#include "engine/blocks/open_calls.h"
#include "engine/session/statistics.h"

namespace heddle::engine {

/// Adds what the tasks of plans did to the statistics of a session. What one act of a task counts for is
/// found once for a plan, and remembered.
class TaskCounts {
 public:
  /// `statistics` outlives it.
  explicit TaskCounts(SessionStatistics* statistics) : statistics_(*statistics) {}
  /// Adds a run of the plan, of which `tasks` says what each task of this rank did; where `calls` are given,
  /// those around the plan, to the places of the script as well.
  void Add(const std::shared_ptr<const Plan>& plan, std::span<const actor::TaskStatistics> tasks,
           const OpenCalls& calls = nullptr);

 private:
  struct Act {
    OperatorStatistics* counts = nullptr;  ///< nullptr: of no operator.
    int64_t bytes = 0;                     ///< Read and written.
    int64_t rows = 0;  ///< Of the whole result; more than there are where the task makes a part for sure.
    bool moves_matrices = false;
    int64_t* whole = nullptr;          ///< In SessionStatistics::ran_whole.
    PlaceStatistics* place = nullptr;  ///< Of the last calls; nullptr: no place.
    int64_t bytes_at_place = 0;        ///< Read and written, of any operator.
  };
  struct OfPlan {
    std::weak_ptr<const Plan> plan;  ///< Another plan may have come to have its key.
    std::vector<Act> acts;           ///< By task.
    OpenCalls calls;                 ///< Of their places.
  };
  OfPlan& ActsOf(const std::shared_ptr<const Plan>& plan, std::span<const actor::TaskStatistics> tasks);
  void FindPlaces(std::span<const actor::TaskStatistics> tasks, const OpenCalls& calls, OfPlan* of_plan);
  void AddToPlace(const actor::TaskStatistics& task, const Act& act);

  SessionStatistics& statistics_;
  RecentlyUsedMap<uint64_t, OfPlan> by_key_{256};
};

}  // namespace heddle::engine
