// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>

#include "compiler/fuse/select.h"

namespace heddle::compiler::fusion {

/// Whether no plan above this bound costs less than `best`; the same sums in another order may differ in
/// their last digits.
inline bool CannotBeat(double bound, double best) { return bound >= best * (1 - 4e-13); }

/// The cost of plans as a search asks for it: counts the questions and collects the cheapest whole plans.
class CountedCost {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  CountedCost(PlanCost& cost, size_t reported_plans, SearchResult* result)
      : cost_(cost), reported_plans_(reported_plans), result_(result) {}

  /// At least `stop_at` once the cost reaches it.
  double Of(const Assignment& plan, double stop_at) {
    ++result_->costed;
    const double cost = cost_.Cost(plan, reported_plans_ == 0 ? stop_at : kNever);
    Keep(plan, cost);
    return cost;
  }

  /// Counts as a costed plan where computing the bound takes as long as that: without stitches always, with
  /// stitches for a whole plan.
  double PartialBound(const Assignment& plan, const Assignment& known) {
    const bool is_cost = !cost_.counts_stitches() ||
                         std::all_of(known.begin(), known.end(), [](uint8_t bit) { return bit != 0; });
    if (is_cost) ++result_->costed;
    return cost_.PartialBound(plan, known);
  }

  /// For a whole plan whose cost came from PartialBound.
  void Keep(const Assignment& plan, double cost) {
    std::vector<CostedPlan>& plans = result_->plans;
    if (reported_plans_ == 0 || (plans.size() == reported_plans_ && cost >= plans.back().cost)) return;
    if (std::any_of(plans.begin(), plans.end(),
                    [&](const CostedPlan& other) { return other.assignment == plan; }))
      return;
    const auto at = std::upper_bound(plans.begin(), plans.end(), cost,
                                     [](double own, const CostedPlan& other) { return own < other.cost; });
    plans.insert(at, {plan, cost});
    if (plans.size() > reported_plans_) plans.pop_back();
  }

 private:
  PlanCost& cost_;
  size_t reported_plans_;
  SearchResult* result_;
};

}  // namespace heddle::compiler::fusion
