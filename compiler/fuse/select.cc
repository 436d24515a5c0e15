// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/select.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "compiler/fuse/branch_and_bound.h"
#include "compiler/fuse/counted_cost.h"

namespace heddle::compiler::fusion {
namespace {

// Points by size of what they would write: the first ones change slowest.
std::vector<size_t> OrderOfSearch(const Partition& partition, const Dag& dag) {
  std::vector<size_t> order(partition.points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return dag[partition.points[a].target].cells > dag[partition.points[b].target].cells;
  });
  return order;
}

// MPSkipEnum: an assignment is a number, all its bits 0 first, all 1 second, then what is between.
void Enumerate(PlanCost& cost, const SearchOptions& options, SearchResult* result) {
  CountedCost counted(cost, options.reported_plans, result);
  const std::vector<size_t> order = OrderOfSearch(cost.partition(), cost.dag());
  const auto assign = [&](uint64_t bits) {
    Assignment q(order.size(), 0);
    for (size_t i = 0; i < order.size(); ++i) q[order[i]] = bits >> (order.size() - 1 - i) & 1;
    return q;
  };
  const auto improve = [&](const Assignment& q, double cost_of_q) {
    if (cost_of_q >= result->cost) return;
    result->assignment = q;
    result->cost = cost_of_q;
  };
  const uint64_t end = uint64_t{1} << order.size();
  result->assignment = assign(0);
  result->cost = result->all_zero = result->all_one = counted.Of(result->assignment, CountedCost::kNever);
  if (end > 1) {
    const Assignment ones = assign(end - 1);
    result->all_one = counted.Of(ones, CountedCost::kNever);
    improve(ones, result->all_one);
  }
  for (uint64_t i = 1; i + 1 < end;) {
    const Assignment q = assign(i);
    if (options.prune_by_cost && CannotBeat(cost.LowerBound(q), result->cost)) {
      // All assignments up to the next carry into this one's last 1 have its ones: none is cheaper.
      i += uint64_t{1} << std::countr_zero(i);
      continue;
    }
    improve(q, counted.Of(q, options.prune_by_cost ? result->cost : CountedCost::kNever));
    ++i;
  }
  result->lower_bound = result->cost;
}

// A search among too many plans to stitch each of them: the heuristics and what it found, with stitches.
void CompareStitched(PlanCost& cost, SearchResult* result) {
  const size_t points = cost.partition().points.size();
  const Assignment zero(points, 0), one(points, 1);
  cost.CountStitches(true);
  result->lower_bound = cost.LowerBound(zero);
  result->cost = cost.Cost(result->assignment);
  result->all_zero = cost.Cost(zero);
  result->all_one = cost.Cost(one);
  for (const auto& [plan, ns] : {std::pair(&zero, result->all_zero), std::pair(&one, result->all_one)}) {
    if (ns >= result->cost) continue;
    result->assignment = *plan;
    result->cost = ns;
  }
  if (CannotBeat(result->lower_bound, result->cost)) result->lower_bound = result->cost;
  for (CostedPlan& plan : result->plans) plan.cost = cost.Cost(plan.assignment);
  std::stable_sort(result->plans.begin(), result->plans.end(),
                   [](const CostedPlan& a, const CostedPlan& b) { return a.cost < b.cost; });
  cost.CountStitches(false);
}

}  // namespace

SearchResult Select(PlanCost& cost, const SearchOptions& options) {
  SearchResult result;
  if (static_cast<int>(cost.partition().points.size()) <= options.max_enumerated_points)
    Enumerate(cost, options, &result);
  else
    BranchAndBound(cost, options, &result);
  if (cost.can_stitch() && !cost.counts_stitches()) CompareStitched(cost, &result);
  return result;
}

}  // namespace heddle::compiler::fusion
