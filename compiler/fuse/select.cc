// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/select.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace heddle::compiler::fusion {
namespace {

// MPSkipEnum over a list of points, of which the first `offset` stay 1 and all that are not in the list stay
// 0.
class Enumeration {
 public:
  Enumeration(PlanCost& cost, const SearchOptions& options, SearchResult* result)
      : cost_(cost), options_(options), result_(result), count_(cost.partition().points.size()) {}

  struct Best {
    Assignment assignment;
    double cost = 0;
  };

  Best Run(const std::vector<int>& order, size_t offset, const std::vector<CutSet>& cuts) {
    const size_t free = order.size() - offset;
    const uint64_t end = uint64_t{1} << free;
    Best best{Assign(order, offset, 0), 0};
    best.cost = Cost(best.assignment);
    if (free == 0) return best;
    if (offset == 0 && order.size() == count_) result_->all_zero = best.cost;
    const Assignment ones = Assign(order, offset, end - 1);
    const double all_one = Cost(ones);
    if (offset == 0 && order.size() == count_) result_->all_one = all_one;
    Improve(ones, all_one, &best);
    std::vector<bool> solved(cuts.size(), false);
    for (uint64_t i = 1; i + 1 < end;) {
      Assignment q = Assign(order, offset, i);
      uint64_t next = i + 1;
      if (const int cut = FindCut(cuts, q); cut >= 0) {
        const uint64_t block = BlockBehind(order, cuts[static_cast<size_t>(cut)].points);
        next = (i / block + 1) * block;
        // Its best plan does not depend on the points in front of it: once is enough.
        if (solved[static_cast<size_t>(cut)]) {
          i = next;
          continue;
        }
        solved[static_cast<size_t>(cut)] = true;
        SolveSides(cuts[static_cast<size_t>(cut)], &q);
      } else if (options_.prune_by_cost && cost_.LowerBound(q) >= best.cost) {
        // All assignments up to the next carry into this one's last 1 have its ones: none is cheaper.
        i += uint64_t{1} << std::countr_zero(i);
        continue;
      }
      Improve(q, Cost(q, options_.prune_by_cost ? best.cost : kNever), &best);
      i = next;
    }
    return best;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  Assignment Assign(const std::vector<int>& order, size_t offset, uint64_t bits) const {
    Assignment q(count_, 0);
    for (size_t i = 0; i < order.size(); ++i)
      q[static_cast<size_t>(order[i])] = i < offset || (bits >> (order.size() - 1 - i) & 1) != 0;
    return q;
  }

  double Cost(const Assignment& q, double stop_at = kNever) {
    ++result_->costed;
    return cost_.Cost(q, stop_at);
  }

  static void Improve(const Assignment& q, double cost, Best* best) {
    if (cost < best->cost) *best = {q, cost};
  }

  static int FindCut(const std::vector<CutSet>& cuts, const Assignment& q) {
    for (size_t i = 0; i < cuts.size(); ++i)
      if (std::all_of(cuts[i].points.begin(), cuts[i].points.end(),
                      [&](int point) { return q[static_cast<size_t>(point)] != 0; }))
        return static_cast<int>(i);
    return -1;
  }

  // Assignments that agree up to the last point of the cut.
  static uint64_t BlockBehind(const std::vector<int>& order, const std::vector<int>& points) {
    size_t last = 0;
    for (size_t i = 0; i < order.size(); ++i)
      if (std::find(points.begin(), points.end(), order[i]) != points.end()) last = i;
    return uint64_t{1} << (order.size() - last - 1);
  }

  void SolveSides(const CutSet& cut, Assignment* q) {
    for (const std::vector<int>* side : {&cut.left, &cut.right}) {
      std::vector<int> order = cut.points;
      order.insert(order.end(), side->begin(), side->end());
      const Best best = Run(order, cut.points.size(), {});
      for (int point : *side) (*q)[static_cast<size_t>(point)] = best.assignment[static_cast<size_t>(point)];
    }
  }

  PlanCost& cost_;
  const SearchOptions& options_;
  SearchResult* result_;
  size_t count_;
};

// Cut sets first, then points by size of what they would write.
std::vector<int> OrderOfSearch(const Partition& partition, const Dag& dag, const std::vector<CutSet>& cuts) {
  std::vector<int> order, rest;
  for (const CutSet& cut : cuts) order.insert(order.end(), cut.points.begin(), cut.points.end());
  for (int i = 0; i < static_cast<int>(partition.points.size()); ++i)
    if (std::find(order.begin(), order.end(), i) == order.end()) rest.push_back(i);
  std::stable_sort(rest.begin(), rest.end(), [&](int a, int b) {
    return dag[partition.points[static_cast<size_t>(a)].target].cells >
           dag[partition.points[static_cast<size_t>(b)].target].cells;
  });
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

// Depth first, from the points of the roots down: what is decided first settles whole operators, so that the
// bound of a partial plan soon is close to its cost. When time is up, the smallest bound of what was left out
// is what nobody can beat.
class BranchAndBound {
 public:
  BranchAndBound(PlanCost& cost, const SearchOptions& options, SearchResult* result)
      : cost_(cost),
        options_(options),
        result_(result),
        count_(cost.partition().points.size()),
        timed_(static_cast<int>(count_) > options.max_exact_points) {}

  void Run() {
    if (options_.clock != nullptr) begin_ns_ = options_.clock->MonotonicNs();
    const Assignment zero(count_, 0), one(count_, 1);
    result_->assignment = zero;
    result_->cost = result_->all_zero = Cost(zero, kNever);
    result_->all_one = Cost(one, kNever);
    Improve(one, result_->all_one);
    Climb(zero, result_->all_zero);
    Climb(one, result_->all_one);
    for (size_t i = 0; i < count_; ++i) order_.push_back(i);
    const std::vector<Point>& points = cost_.partition().points;
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return points[a].consumer != points[b].consumer ? points[a].consumer > points[b].consumer
                                                      : points[a].target > points[b].target;
    });
    assignment_ = result_->assignment;
    known_.assign(count_, 0);
    left_out_ = kNever;
    least_cost_ = Bound();
    Decide(0, least_cost_);
    result_->lower_bound = std::min(result_->cost, left_out_);
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  bool TimeIsUp() const {
    if (!timed_) return false;
    if (result_->costed >= options_.max_costed) return true;
    if (options_.clock == nullptr) return false;
    const int64_t now_ns = options_.clock->MonotonicNs();
    const double most_seconds = options_.runs_of_plan * (result_->cost - least_cost_);
    return now_ns >= options_.deadline_ns || static_cast<double>(now_ns - begin_ns_) > most_seconds * 1e9;
  }

  double Cost(const Assignment& q, double stop_at) {
    ++result_->costed;
    return cost_.Cost(q, stop_at);
  }

  double Bound() {
    ++result_->costed;
    return cost_.PartialBound(assignment_, known_);
  }

  void Improve(const Assignment& q, double cost) {
    if (cost < result_->cost) {
      result_->cost = cost;
      result_->assignment = q;
    }
  }

  // Flips single points while that helps, so that the bound has something to prune against.
  void Climb(Assignment q, double cost) {
    for (bool better = true; better && !TimeIsUp();) {
      better = false;
      for (size_t i = 0; i < count_ && !TimeIsUp(); ++i) {
        q[i] ^= 1;
        const double flipped = Cost(q, cost);
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

  // All plans that agree with what is known; `bound` is theirs.
  void Decide(size_t level, double bound) {
    if (bound >= result_->cost) return;
    if (level == count_) return Improve(assignment_, bound);
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
      Decide(level + 1, std::max(bound, bounds[value]));
    }
    known_[point] = 0;
  }

  PlanCost& cost_;
  const SearchOptions& options_;
  SearchResult* result_;
  size_t count_;
  bool timed_;
  std::vector<size_t> order_;
  Assignment assignment_, known_;
  double left_out_ = 0;
  double least_cost_ = 0;  // No plan costs less.
  int64_t begin_ns_ = 0;
};

}  // namespace

SearchResult Select(PlanCost& cost, const SearchOptions& options) {
  SearchResult result;
  const Partition& partition = cost.partition();
  const auto points = static_cast<int>(partition.points.size());
  if (points > options.max_enumerated_points) {
    BranchAndBound(cost, options, &result).Run();
    return result;
  }
  std::vector<CutSet> cuts;
  if (options.prune_by_structure && points >= options.min_structure_points)
    cuts = FindCutSets(cost.dag(), partition);
  Enumeration enumeration(cost, options, &result);
  const Enumeration::Best best = enumeration.Run(OrderOfSearch(partition, cost.dag(), cuts), 0, cuts);
  result.assignment = best.assignment;
  result.cost = result.lower_bound = best.cost;
  if (points == 0) result.all_zero = result.all_one = best.cost;
  return result;
}

}  // namespace heddle::compiler::fusion
