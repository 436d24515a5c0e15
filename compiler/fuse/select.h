// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/fuse/plan_cost.h"
#include "core/environment/clock.h"

namespace heddle::compiler::fusion {

struct SearchOptions {
  bool prune_by_cost = true;       ///< The enumeration skips plans that a bound excludes.
  bool prune_by_structure = true;  ///< Branch and bound solves each side of a cut set once.
  /// Partitions of more points are searched by branch and bound: its bounds of partial plans exclude more,
  /// but each takes as long as costing a plan.
  int max_enumerated_points = 6;
  int max_exact_points = 20;       ///< Up to here the optimum is found, however long it takes.
  int max_structure_points = 100;  ///< Finding cut sets takes time quadratic in the points.
  // A search of more than max_exact_points points ends when the first of three limits is reached.
  Clock* clock = nullptr;  ///< For the first two; nullptr: only max_costed counts.
  int64_t deadline_ns = 0;
  double runs_of_plan = 100;       ///< It took as long as the best plan could still gain in so many runs.
  int64_t max_costed = 1'000'000;  ///< So that a search ends where a clock stands still.
  /// Where no plan that is known fits in the memory budget, so many bounds of partial plans are enough,
  /// however few points there are: most plans are as bad as others then, and nothing excludes them.
  int64_t max_bounds_in_vain = 4'000;
  size_t reported_plans = 0;  ///< So many of the cheapest plans that were costed are in the result.
};

/// A plan and what it costs, in modelled nanoseconds.
struct CostedPlan {
  Assignment assignment;
  double cost = 0;
};

struct SearchResult {
  Assignment assignment;
  double cost = 0;
  double all_zero = 0, all_one = 0;  ///< Costs of fusing everything and of cutting every point.
  double lower_bound = 0;            ///< No plan costs less; equals cost when the search was exact.
  int64_t costed = 0;                ///< Assignments, whole or partial, whose cost was computed.
  std::vector<CostedPlan> plans;     ///< The cheapest whole ones of them, ascending; at most reported_plans.
};

/// The cheapest assignment. Few points: MPSkipEnum, all assignments in binary order, skipping those that a
/// lower bound excludes. More: branch and bound, deciding points from the roots down, each side of a cut set
/// once. Exact up to max_exact_points points where some plan fits in the memory budget. Partitions without
/// points have one plan.
///
/// Where some operators may share a pass (stitch.h), the cost is that with stitches up to kMostStitchedPoints
/// points, and the search is exact for it. Above, it goes by the cost of the operators by themselves; what it
/// finds is compared with the two heuristics with stitches.
SearchResult Select(PlanCost& cost, const SearchOptions& options);

/// Points that, all 1, split the rest into two parts without influence on each other.
struct CutSet {
  std::vector<int> points, left,
      right;         ///< Ascending positions in Partition::points; right is below the cut.
  double score = 0;  ///< Assignments left to cost; fewer is better.
};
/// Valid cut sets by ascending score. Targets of the cut, of the left and of the right side are pairwise
/// different, and no operator reaches both sides, so the cost is a sum of the two.
std::vector<CutSet> FindCutSets(const Dag& dag, const Partition& partition);

}  // namespace heddle::compiler::fusion
