// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/fuse/plan_cost.h"
#include "core/clock.h"

namespace heddle::compiler::fusion {

struct SearchOptions {
  bool prune_by_cost = true;
  bool prune_by_structure = true;
  int min_structure_points = 10;  ///< Cut sets gain nothing below.
  int max_enumerated_points =
      10;                     ///< Above: branch and bound over partial plans, which has the tighter bound.
  int max_exact_points = 20;  ///< Up to here the optimum is found, however long it takes.
  Clock* clock = nullptr;     ///< Above: until the deadline; nullptr: until max_costed alone.
  int64_t deadline_ns = 0;
  double runs_of_plan = 100;  ///< Above: and until it took as long as a better plan could save in so many runs.
  int64_t max_costed = 1'000'000;  ///< Above max_exact_points, so that it ends where the clock stands still.
};

struct SearchResult {
  Assignment assignment;
  double cost = 0;
  double all_zero = 0, all_one = 0;  ///< Costs of fusing everything and of cutting every point.
  double lower_bound = 0;            ///< No plan costs less; equals cost when the search was exact.
  int64_t costed = 0;                ///< Assignments, whole or partial, whose cost was computed.
};

/// The cheapest assignment. Few points: MPSkipEnum, all assignments in binary order, skipping those that a
/// lower bound or a solved sub-problem excludes. More: branch and bound, deciding points from the roots down.
/// Exact up to max_exact_points points. Partitions without points have one plan.
SearchResult Select(PlanCost& cost, const SearchOptions& options);

/// Points that, all 1, split the rest into two parts without influence on each other.
struct CutSet {
  std::vector<int> points, left, right;  ///< Ascending positions in Partition::points.
  double score = 0;                      ///< Assignments left to cost; fewer is better.
};
/// Valid cut sets by ascending score. Targets of the cut, of the left and of the right side are pairwise
/// different, and no operator reaches both sides, so the cost is a sum of the two.
std::vector<CutSet> FindCutSets(const Dag& dag, const Partition& partition);

}  // namespace heddle::compiler::fusion
