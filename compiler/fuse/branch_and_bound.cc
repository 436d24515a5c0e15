// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/branch_and_bound.h"

#include <algorithm>

#include "compiler/fuse/counted_cost.h"

namespace heddle::compiler::fusion {
namespace {

class Search {
 public:
  Search(PlanCost& cost, const SearchOptions& options, SearchResult* result)
      : cost_(cost),
        counted_(cost, options.reported_plans, result),
        options_(options),
        result_(result),
        count_(cost.partition().points.size()),
        timed_(static_cast<int>(count_) > options.max_exact_points) {}

  void Run() {
    if (options_.clock != nullptr) begin_ns_ = options_.clock->MonotonicNs();
    const Assignment zero(count_, 0), one(count_, 1);
    result_->all_zero = counted_.Of(zero, kNever);
    result_->all_one = counted_.Of(one, kNever);
    best_ = {zero, result_->all_zero};
    Improve(one, result_->all_one);
    Climb(zero, result_->all_zero);
    Climb(one, result_->all_one);
    for (size_t i = 0; i < count_; ++i) order_.push_back(i);
    const std::vector<Point>& points = cost_.partition().points;
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return points[a].consumer != points[b].consumer ? points[a].consumer > points[b].consumer
                                                      : points[a].target > points[b].target;
    });
    // A pass may have results on both sides of a cut.
    if (options_.prune_by_structure && !cost_.counts_stitches() &&
        static_cast<int>(count_) <= options_.max_structure_points)
      for (CutSet& cut : FindCutSets(cost_.dag(), cost_.partition())) {
        sides_.push_back({cut.points, std::move(cut.left), {}});
        sides_.push_back({std::move(cut.points), std::move(cut.right), {}});
      }
    assignment_.assign(count_, 0);
    known_.assign(count_, 0);
    left_out_ = kNever;
    least_cost_ = Bound();
    Decide(0, least_cost_, &best_);
    result_->assignment = best_.assignment;
    result_->cost = best_.cost;
    result_->lower_bound = std::min(best_.cost, left_out_);
  }

 private:
  static constexpr double kNever = CountedCost::kNever;

  // One side of a cut set.
  struct Side {
    std::vector<int> cut, points;
    Assignment best;  // Empty until it is needed.
  };

  bool TimeIsUp() const {
    if (best_.cost >= kInfeasibleNs && bounds_ >= options_.max_bounds_in_vain) return true;
    if (!timed_) return false;
    if (result_->costed >= options_.max_costed) return true;
    if (options_.clock == nullptr) return false;
    const int64_t now_ns = options_.clock->MonotonicNs();
    const double most_ns = options_.runs_of_plan * (best_.cost - least_cost_);
    return now_ns >= options_.deadline_ns || static_cast<double>(now_ns - begin_ns_) > most_ns;
  }

  double Bound() {
    ++bounds_;
    return counted_.PartialBound(assignment_, known_);
  }

  void Improve(const Assignment& q, double cost) {
    if (cost < best_.cost) best_ = {q, cost};
  }

  // Flips single points while that helps, so that the bound has something to prune against.
  void Climb(Assignment q, double cost) {
    for (bool better = true; better && !TimeIsUp();) {
      better = false;
      for (size_t i = 0; i < count_ && !TimeIsUp(); ++i) {
        q[i] ^= 1;
        const double flipped = counted_.Of(q, cost);
        if (flipped < cost) {
          cost = flipped;
          better = true;
        } else {
          q[i] ^= 1;
        }
      }
    }
    Improve(q, cost);
  }

  // All plans that agree with what is known; `bound` is theirs. `best` is the cheapest so far of those that
  // the open points are to be chosen among.
  void Decide(size_t level, double bound, CostedPlan* best) {
    if (CannotBeat(bound, best->cost)) return;
    while (level < count_ && known_[order_[level]] != 0) ++level;
    if (level == count_) {
      *best = {assignment_, bound};
      counted_.Keep(assignment_, bound);
      return;
    }
    if (TimeIsUp()) {
      left_out_ = std::min(left_out_, bound);
      return;
    }
    const size_t point = order_[level];
    double bounds[2];
    known_[point] = 1;
    for (uint8_t value : {0, 1}) {
      assignment_[point] = value;
      bounds[value] = Bound();
    }
    const uint8_t first = bounds[1] < bounds[0] ? 1 : 0;
    for (uint8_t value : {first, static_cast<uint8_t>(1 - first)}) {
      assignment_[point] = value;
      double own = std::max(bound, bounds[value]);
      if (CannotBeat(own, best->cost)) continue;
      const std::vector<int> settled = value == 1 ? SettleSides(own, best->assignment) : std::vector<int>();
      if (!settled.empty()) own = std::max(own, Bound());
      Decide(level + 1, own, best);
      for (int other : settled) known_[static_cast<size_t>(other)] = 0;
    }
    known_[point] = 0;
  }

  // Decides the points of sides that are open as a whole, where all points of the cut set are 1, and tells
  // them. `bound` is that of the plans that agree so far, `others` what other open points are while a side is
  // solved.
  std::vector<int> SettleSides(double bound, const Assignment& others) {
    std::vector<int> settled;
    for (Side& side : sides_) {
      const auto is_one = [&](int point) {
        return known_[static_cast<size_t>(point)] != 0 && assignment_[static_cast<size_t>(point)] != 0;
      };
      const auto is_open = [&](int point) { return known_[static_cast<size_t>(point)] == 0; };
      if (!std::all_of(side.cut.begin(), side.cut.end(), is_one) ||
          !std::all_of(side.points.begin(), side.points.end(), is_open))
        continue;
      if (side.best.empty()) side.best = Solve(side.points, bound, others);
      for (int point : side.points) {
        assignment_[static_cast<size_t>(point)] = side.best[static_cast<size_t>(point)];
        known_[static_cast<size_t>(point)] = 1;
        settled.push_back(point);
      }
    }
    return settled;
  }

  Assignment Solve(const std::vector<int>& points, double bound, const Assignment& others) {
    const Assignment known = known_;
    for (size_t i = 0; i < count_; ++i)
      if (known[i] == 0) assignment_[i] = others[i];
    CostedPlan best{assignment_, counted_.Of(assignment_, kNever)};
    std::fill(known_.begin(), known_.end(), 1);
    for (int point : points) known_[static_cast<size_t>(point)] = 0;
    Decide(0, Bound(), &best);
    known_ = known;
    // Bounds of one side say nothing about all plans.
    if (TimeIsUp()) left_out_ = std::min(left_out_, bound);
    return best.assignment;
  }

  PlanCost& cost_;
  CountedCost counted_;
  const SearchOptions& options_;
  SearchResult* result_;
  size_t count_;
  bool timed_;
  std::vector<size_t> order_;
  std::vector<Side> sides_;
  CostedPlan best_;
  Assignment assignment_, known_;
  double left_out_ = 0;    // The smallest bound of plans that were not looked at when time was up.
  double least_cost_ = 0;  // No plan costs less.
  int64_t begin_ns_ = 0;
  int64_t bounds_ = 0;  // Of partial plans, so far.
};

}  // namespace

void BranchAndBound(PlanCost& cost, const SearchOptions& options, SearchResult* result) {
  Search(cost, options, result).Run();
}

}  // namespace heddle::compiler::fusion
