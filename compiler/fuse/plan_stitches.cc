// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "compiler/fuse/plan_cost.h"
#include "compiler/fuse/template.h"

// How stitches enter the cost of a plan: what they save, and a lower bound for all plans with stitches.
namespace heddle::compiler::fusion {
namespace {

// Whether stitches could save enough traffic for one merge. An upper bound: every value of one height is read
// once less and written once less.
bool CouldSave(const Dag& dag, const Memo& memo, const std::vector<NodeId>& nodes) {
  std::map<int64_t, double> saving;
  for (const NodeId id : nodes)
    if (IsFullAggregate(dag[id]) ||
        std::any_of(memo[id].begin(), memo[id].end(), [](const Entry& e) { return e.JoinsOperators(); }))
      for (const NodeId input : dag[id].inputs)
        if (input != kNoNode && dag[input].matrix) saving[HeightOf(dag, id)] += 2 * dag[input].bytes;
  return std::any_of(saving.begin(), saving.end(),
                     [](const auto& entry) { return entry.second >= kLeastSavedBytes; });
}

}  // namespace

void PlanCost::PrepareStitches(const Memo& memo) {
  if (!CouldSave(dag_, memo, partition_.nodes)) return;
  stitcher_ = std::make_unique<Stitcher>(dag_, model_, StitchOptions{}, &partition_.nodes);
  stitched_ = partition_.points.size() <= kMostStitchedPoints;
  const size_t count = partition_.nodes.size();
  for (const NodeId id : partition_.nodes) opens_stitch_.push_back(kStitchTemplate.open(dag_, id));
  const auto reads_inside = [&](NodeId consumer, NodeId id) {
    return Inside(consumer) && opens_stitch_[Local(consumer)] != 0 &&
           kStitchTemplate.fuse(dag_, consumer, id) && !ReducesRows(dag_[id]);
  };
  for (size_t i = 0; i < count; ++i) {
    const NodeId id = partition_.nodes[i];
    const std::vector<NodeId>& consumers = dag_[id].consumers;
    leaves_.push_back(
        opens_stitch_[i] == 0 || consumers.empty() ||
        std::any_of(consumers.begin(), consumers.end(), [&](NodeId to) { return !reads_inside(to, id); }));
  }
  points_of_.assign(count, 0);
  ones_.assign(count, 0);
  computing_.assign(count, 0);
  for (const Point& point : partition_.points) ++points_of_[Local(point.target)];
  for (size_t i = 0; i < partition_.inputs.size(); ++i)
    stitched_read_ += input_read_[i] * LeastPasses([&](NodeId id) {
                        const std::vector<NodeId>& inputs = dag_[id].inputs;
                        return std::find(inputs.begin(), inputs.end(), partition_.inputs[i]) != inputs.end();
                      });
  // Nodes that walk different numbers of rows are in different operators.
  std::set<int64_t> heights;
  for (const NodeId id : partition_.nodes) heights.insert(HeightOf(dag_, id));
  for (const int64_t height : heights)
    stitched_fixed_ +=
        model_.constants.operator_ns * LeastPasses([&](NodeId id) { return HeightOf(dag_, id) == height; });
  for (const std::vector<NodeId>* list : {&partition_.roots, &partition_.external})
    for (const NodeId id : *list)
      if (leaves_[Local(id)] != 0)
        stitched_fixed_ += dag_[id].bytes / model_.constants.write_bytes_per_ns * bound_factor_;
}

// A lower bound for the number of passes that hold nodes which take part. Two nodes cannot share a pass if a
// way leads from one to the other through a value that is complete only when all rows have been seen, or
// through rows of another height. Counts such breaks along each way from the inputs up.
template <typename TakesPart>
int PlanCost::LeastPasses(TakesPart takes_part) const {
  // By position: twice the passes so far, less one if that of the node is one of them.
  std::vector<int> state(partition_.nodes.size(), 0);
  int most = 0;
  for (size_t i = 0; i < partition_.nodes.size(); ++i) {
    const NodeId id = partition_.nodes[i];
    for (size_t k = 0; k < dag_[id].inputs.size(); ++k) {
      const NodeId from = dag_[id].inputs[k];
      if (from == kNoNode || !Inside(from)) continue;
      const bool same_pass = dag_[from].matrix && dag_[id].by_rows[k] != 0 && !ReducesRows(dag_[from]) &&
                             HeightOf(dag_, from) == HeightOf(dag_, id);
      int before = state[Local(from)];
      if (!same_pass && before % 2 != 0) ++before;
      state[i] = std::max(state[i], before);
    }
    if (state[i] % 2 == 0 && takes_part(id)) ++state[i];
    most = std::max(most, (state[i] + 1) / 2);
  }
  return most;
}

// Time of the units of this plan that stitching cannot change: no pass can hold them, and no other unit
// computes one of their results inside.
double PlanCost::TimeOutsideStitches() {
  std::fill(computing_.begin(), computing_.end(), 0);
  for (const PlanUnit& unit : units_)
    for (const NodeId id : unit.covered) ++computing_[Local(id)];
  double ns = 0;
  for (size_t u = 0; u < units_.size(); ++u) {
    const PlanUnit& unit = units_[u];
    const bool may_join = unit.kind != FusionTemplate::kOuter &&
                          (IsFullAggregate(dag_[unit.roots[0]]) ||
                           std::all_of(unit.covered.begin(), unit.covered.end(),
                                       [this](NodeId id) { return opens_stitch_[Local(id)] != 0; }));
    if (!may_join && std::all_of(unit.roots.begin(), unit.roots.end(),
                                 [this](NodeId root) { return computing_[Local(root)] == 1; }))
      ns += unit_ns_[u];
  }
  return ns;
}

double PlanCost::SavedByStitches() {
  if (units_.size() < 2) return 0;
  // The replacement lists units in this order, and the stitcher decides between equal savings by it.
  std::vector<size_t> order(units_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto first = [this](size_t unit) { return *std::ranges::min_element(units_[unit].roots); };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return first(a) < first(b); });
  std::vector<PlanUnit> units;
  for (const size_t unit : order) units.push_back(std::move(units_[unit]));
  units_ = std::move(units);
  // Different assignments may make the same units.
  std::vector<NodeId> key;
  for (const PlanUnit& unit : units_) {
    key.insert(key.end(), unit.roots.begin(), unit.roots.end());
    key.push_back(kNoNode);
    key.insert(key.end(), unit.covered.begin(), unit.covered.end());
    key.push_back(kNoNode);
  }
  const auto [known, fresh] = saved_.try_emplace(std::move(key), 0);
  if (!fresh && trace_ == nullptr) return known->second;
  StitchedUnits joined = stitcher_->Join(units_);
  double saved = 0;
  for (Stitch& stitch : joined.stitches) {
    double separate_ns = 0;
    for (const size_t unit : stitch.units) separate_ns += unit_ns_[order[unit]];
    // What the units take beyond the times that the stitcher compares, the stitch takes as well.
    stitch.time.total += std::max(0.0, separate_ns - stitch.separate_ns);
    saved += separate_ns - stitch.time.total;
  }
  for (size_t u = 0; u < units_.size(); ++u)
    if (joined.unread[u]) saved += unit_ns_[order[u]];
  known->second = saved;
  if (trace_ == nullptr || joined.stitches.empty()) return saved;
  std::vector<PlannedOperator> planned;
  std::vector<bool> gone = joined.unread;
  for (const Stitch& stitch : joined.stitches) {
    for (const size_t unit : stitch.units) gone[unit] = true;
    planned.push_back({{.kind = StitchKind(dag_, stitch.roots), .roots = stitch.roots},
                       stitch.covered,
                       stitch.inputs,
                       stitch.time});
  }
  for (size_t u = 0; u < units_.size(); ++u)
    if (!gone[u]) planned.push_back(std::move((*trace_)[order[u]]));
  *trace_ = std::move(planned);
  return saved;
}

// In every plan each input is read by at least LeastPasses passes and each node is computed at least once. A
// value must be written if something reads it that cannot be in the pass which computes it: a root, a node
// that another partition reads, and a target whose points are all 1, since then no consumer computes it
// inside.
double PlanCost::StitchedBound(const Assignment& assignment) {
  ++epoch_;
  double read = stitched_read_, fixed = stitched_fixed_;
  for (size_t i = 0; i < assignment.size(); ++i) {
    if (assignment[i] == 0) continue;
    const size_t target = Local(partition_.points[i].target);
    if (materialized_[target] != epoch_) {
      materialized_[target] = epoch_;
      ones_[target] = 0;
    }
    if (++ones_[target] < points_of_[target] || leaves_[target] == 0 || counted_[target] != 0) continue;
    fixed += dag_[partition_.points[i].target].bytes / model_.constants.write_bytes_per_ns * bound_factor_;
    if (opens_stitch_[target] == 0) read += target_read_[target];
  }
  return bound_factor_ * std::max(read, bound_compute_) + fixed;
}

}  // namespace heddle::compiler::fusion
