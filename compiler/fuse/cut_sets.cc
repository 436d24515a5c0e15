// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "compiler/fuse/select.h"

// Structural pruning of the search: where the points of a partition hang together.
namespace heddle::compiler::fusion {
namespace {

using PointSet = std::set<int>;

// Which points are met next below each point; the last element: below the roots.
class Reachability {
 public:
  Reachability(const Dag& dag, const Partition& partition) : dag_(dag), partition_(partition) {
    const size_t count = partition.points.size();
    children_.resize(count + 1);
    for (size_t i = 0; i < count; ++i)
      point_of_[{partition.points[i].consumer, partition.points[i].target}] = static_cast<int>(i);
    for (NodeId root : partition.roots) Walk(root, static_cast<int>(count));
  }

  int root() const { return static_cast<int>(children_.size()) - 1; }
  const PointSet& ChildrenOf(int point) const { return children_[static_cast<size_t>(point)]; }

  /// Everything below `from` that can be reached without stepping on `without`.
  PointSet Below(const std::vector<int>& from, const PointSet& without) const {
    PointSet result;
    std::vector<int> work = from;
    while (!work.empty()) {
      const int point = work.back();
      work.pop_back();
      for (int child : ChildrenOf(point))
        if (!without.contains(child) && result.insert(child).second) work.push_back(child);
    }
    return result;
  }

 private:
  void Walk(NodeId start, int start_point) {
    std::vector<std::pair<NodeId, int>> work = {{start, start_point}};
    while (!work.empty()) {
      const auto [id, current] = work.back();
      work.pop_back();
      if (!seen_.emplace(id, current).second) continue;
      for (NodeId input : dag_[id].inputs) {
        if (input == kNoNode || !std::binary_search(partition_.nodes.begin(), partition_.nodes.end(), input))
          continue;
        const auto found = point_of_.find({id, input});
        if (found != point_of_.end()) children_[static_cast<size_t>(current)].insert(found->second);
        work.emplace_back(input, found != point_of_.end() ? found->second : current);
      }
    }
  }

  const Dag& dag_;
  const Partition& partition_;
  std::map<std::pair<NodeId, NodeId>, int> point_of_;
  std::vector<PointSet> children_;
  std::set<std::pair<NodeId, int>> seen_;
};

bool AreDisjoint(const std::set<NodeId>& a, const std::set<NodeId>& b) {
  return std::none_of(a.begin(), a.end(), [&](NodeId id) { return b.contains(id); });
}

template <typename Points>
std::set<NodeId> TargetsOf(const Partition& partition, const Points& points) {
  std::set<NodeId> targets;
  for (int point : points) targets.insert(partition.points[static_cast<size_t>(point)].target);
  return targets;
}

// Fills in both sides and the score; false if the candidate does not split the rest.
bool Split(const Partition& partition, const Reachability& reachability, CutSet* cut) {
  const PointSet own(cut->points.begin(), cut->points.end());
  const PointSet left = reachability.Below({reachability.root()}, own);
  const PointSet right = reachability.Below(cut->points, own);
  if (left.empty() || right.empty()) return false;
  if (std::any_of(left.begin(), left.end(), [&](int point) { return right.contains(point); })) return false;
  if (left.size() + right.size() + own.size() != partition.points.size()) return false;
  const std::set<NodeId> cut_targets = TargetsOf(partition, own), left_targets = TargetsOf(partition, left),
                         right_targets = TargetsOf(partition, right);
  if (!AreDisjoint(cut_targets, left_targets) || !AreDisjoint(cut_targets, right_targets) ||
      !AreDisjoint(left_targets, right_targets))
    return false;
  cut->left.assign(left.begin(), left.end());
  cut->right.assign(right.begin(), right.end());
  const double fixed = std::exp2(-static_cast<double>(own.size()));
  cut->score =
      (1 - fixed) * std::exp2(static_cast<double>(partition.points.size())) +
      fixed * (std::exp2(static_cast<double>(left.size())) + std::exp2(static_cast<double>(right.size())));
  return true;
}

}  // namespace

std::vector<CutSet> FindCutSets(const Dag& dag, const Partition& partition) {
  const Reachability reachability(dag, partition);
  std::map<PointSet, std::vector<int>> groups;
  for (size_t i = 0; i < partition.points.size(); ++i)
    if (const PointSet& children = reachability.ChildrenOf(static_cast<int>(i)); !children.empty())
      groups[children].push_back(static_cast<int>(i));
  std::vector<CutSet> found;
  std::vector<std::vector<int>> failed;
  for (const auto& [children, points] : groups) {
    CutSet cut;
    cut.points = points;
    if (Split(partition, reachability, &cut))
      found.push_back(std::move(cut));
    else
      failed.push_back(points);
  }
  if (failed.size() < 5)
    for (size_t a = 0; a < failed.size(); ++a)
      for (size_t b = a + 1; b < failed.size(); ++b) {
        CutSet cut;
        std::merge(failed[a].begin(), failed[a].end(), failed[b].begin(), failed[b].end(),
                   std::back_inserter(cut.points));
        if (Split(partition, reachability, &cut)) found.push_back(std::move(cut));
      }
  std::stable_sort(found.begin(), found.end(), [](const CutSet& a, const CutSet& b) {
    return a.score != b.score ? a.score < b.score : a.points < b.points;
  });
  // Only cut sets without points in common can stand one behind the other in the order of the search.
  std::vector<CutSet> result;
  PointSet used;
  for (CutSet& cut : found) {
    if (std::any_of(cut.points.begin(), cut.points.end(), [&](int point) { return used.contains(point); }))
      continue;
    used.insert(cut.points.begin(), cut.points.end());
    result.push_back(std::move(cut));
  }
  return result;
}

}  // namespace heddle::compiler::fusion
