// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/run/tree_parts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/base/parallel.h"
#include "ops/recursion/body/batch_time.h"

namespace heddle::ops {
namespace {

// At most so many nodes may be above a cut; a cut may miss an even share of the work by this much.
constexpr size_t kMostAbove = 64;
constexpr double kUneven = 0.03;
// Rows of a batch for which the work of a node is taken.
constexpr int64_t kUsualRows = 8;

// Works on numbers of Linearized::order, in which the nodes of a subtree follow each other.
class PartChooser {
 public:
  PartChooser(const Linearized& structure, int threads, const BatchTime& time)
      : structure_(structure), threads_(threads), time_(time) {}

  TreeParts Choose() {
    if (threads_ < 2 || structure_.nodes.size() < 2) return {};
    if (!structure_.is_tree && structure_.components.size() < 2) return {};
    AddUpWork();
    if (structure_.is_tree) FindTops();
    const double even = work_.back() / threads_;
    for (int i = 1; i < threads_; ++i)
      if (structure_.is_tree)
        CutAt(even * i, even);
      else
        PartAt(even * i);
    bounds_.push_back(static_cast<int32_t>(structure_.nodes.size()));
    std::sort(above_.begin(), above_.end());
    above_.erase(std::unique(above_.begin(), above_.end()), above_.end());
    TreeParts parts = PartsBetweenBounds();
    if (parts.parts.size() < 2 || TimeOf(parts) >= TimeOf(structure_.batches, threads_)) return {};
    return parts;
  }

 private:
  // A node and where it stands.
  struct At {
    int32_t number = 0, place = 0, node_class = 0;
  };
  int32_t NumberOf(int32_t place) const { return structure_.order[static_cast<size_t>(place)]; }
  int32_t EndOf(int32_t place) const {
    return NumberOf(place) + structure_.subtrees[static_cast<size_t>(place)];
  }
  double WorkBefore(int32_t number) const { return work_[static_cast<size_t>(number)]; }

  void AddUpWork() {
    work_.assign(structure_.nodes.size() + 1, 0);
    for (size_t k = 0; k < structure_.classes.size(); ++k) {
      const Linearized::Class& node_class = structure_.classes[k];
      if (node_class.begin == node_class.end) continue;
      const double of_node = time_(static_cast<int32_t>(k), kUsualRows, 1) / kUsualRows;
      for (int64_t place = node_class.begin; place < node_class.end; ++place)
        work_[static_cast<size_t>(NumberOf(static_cast<int32_t>(place))) + 1] = of_node;
    }
    for (size_t i = 1; i < work_.size(); ++i) work_[i] += work_[i - 1];
  }

  // The roots that are in no other tree. A root may be in the tree of another, and occur twice.
  void FindTops() {
    std::vector<int32_t> roots = structure_.roots;
    std::sort(roots.begin(), roots.end(), [&](int32_t a, int32_t b) { return NumberOf(a) < NumberOf(b); });
    int32_t end = 0;
    for (const int32_t root : roots) {
      if (NumberOf(root) < end) continue;
      end = EndOf(root);
      tops_.push_back(root);
    }
  }

  // Adds a bound between two parts of a graph whose nodes are shared: between two components.
  void PartAt(double work) {
    const std::vector<int32_t>& components = structure_.components;
    const auto behind = std::partition_point(components.begin(), components.end(),
                                             [&](int32_t number) { return WorkBefore(number) <= work; });
    int32_t bound = behind == components.end() ? static_cast<int32_t>(structure_.nodes.size()) : *behind;
    if (behind != components.begin() && work - WorkBefore(*(behind - 1)) < WorkBefore(bound) - work)
      bound = *(behind - 1);
    bounds_.push_back(std::max(bound, bounds_.back()));
  }

  // Adds a bound in a forest, at an end of a subtree, near where `work` has been done. Farther down the tree
  // the bound can be nearer, but the nodes above it go to the rest, which runs level by level.
  void CutAt(double work, double even) {
    const auto top = std::partition_point(tops_.begin(), tops_.end() - 1,
                                          [&](int32_t place) { return WorkBefore(EndOf(place)) <= work; });
    int32_t place = *top, bound = 0;
    double least = -1, time_above = 0;
    std::vector<int32_t> above;
    size_t levels_above = 0;
    while (true) {
      const double before = work - WorkBefore(NumberOf(place)), behind = WorkBefore(EndOf(place)) - work;
      const double missed = std::min(std::abs(before), std::abs(behind));
      if (least < 0 || missed + time_above < least) {
        least = missed + time_above;
        bound = before < behind ? NumberOf(place) : EndOf(place);
        levels_above = above.size();
      }
      if (missed <= kUneven * even || above.size() == kMostAbove) break;
      above.push_back(NumberOf(place));
      const int32_t node_class = ClassOf(place);
      time_above += time_(node_class, 1, threads_);
      const int32_t child = ChildAt(place, structure_.classes[static_cast<size_t>(node_class)], work);
      if (child == place) break;
      place = child;
    }
    bounds_.push_back(std::max(bound, bounds_.back()));
    above_.insert(above_.end(), above.begin(), above.begin() + static_cast<std::ptrdiff_t>(levels_above));
  }

  int32_t ClassOf(int32_t place) const {
    const auto behind =
        std::partition_point(structure_.classes.begin(), structure_.classes.end(),
                             [&](const Linearized::Class& node_class) { return node_class.begin <= place; });
    return static_cast<int32_t>(behind - structure_.classes.begin()) - 1;
  }

  // The child in whose subtree `work` has been done, or the last one; a leaf itself.
  int32_t ChildAt(int32_t place, const Linearized::Class& node_class, double work) const {
    int32_t child = place;
    for (int64_t call = 0; call < node_class.calls; ++call) {
      child = node_class.children[static_cast<size_t>(call * (node_class.end - node_class.begin) + place -
                                                      node_class.begin)];
      if (WorkBefore(EndOf(child)) > work) break;
    }
    return child;
  }

  // Each part has the nodes between two bounds but for those above cuts.
  TreeParts PartsBetweenBounds() const {
    TreeParts parts;
    for (size_t i = 0; i + 1 < bounds_.size(); ++i) {
      TreeParts::Batches part;
      for (const Linearized::Batch& batch : structure_.batches)
        AddBetween(batch, bounds_[i], bounds_[i + 1], &part);
      if (!part.empty()) parts.parts.push_back(std::move(part));
    }
    for (const Linearized::Batch& batch : structure_.batches)
      for (const int32_t number : above_) AddWithin(batch, number, number + 1, &parts.rest);
    return parts;
  }
  void AddBetween(const Linearized::Batch& batch, int32_t first, int32_t end, TreeParts::Batches* to) const {
    for (auto above = std::lower_bound(above_.begin(), above_.end(), first);
         above != above_.end() && *above < end; ++above) {
      AddWithin(batch, first, *above, to);
      first = *above + 1;
    }
    AddWithin(batch, first, end, to);
  }
  // Nodes of a batch that stand next to each other stay together.
  void AddWithin(const Linearized::Batch& batch, int32_t first, int32_t end, TreeParts::Batches* to) const {
    const Linearized::Batch places = structure_.Within(batch, first, end);
    if (places.begin >= places.end) return;
    if (!to->empty() && to->back().begin >= batch.begin && to->back().end == places.begin)
      to->back().end = places.end;
    else
      to->push_back(places);
  }

  double TimeOf(const TreeParts::Batches& batches, int threads) const {
    double time = 0;
    for (const Linearized::Batch& batch : batches)
      time += time_(batch.node_class, batch.end - batch.begin, threads);
    return time;
  }
  double TimeOf(const TreeParts& parts) const {
    double longest = 0;
    for (const TreeParts::Batches& part : parts.parts) longest = std::max(longest, TimeOf(part, 1));
    return longest + kHandOverMicroseconds + TimeOf(parts.rest, threads_);
  }

  const Linearized& structure_;
  const int threads_;
  const BatchTime& time_;
  std::vector<double> work_;           // Of the nodes before each number.
  std::vector<int32_t> tops_;          // Places of the tops of trees.
  std::vector<int32_t> bounds_ = {0};  // Numbers at which parts begin.
  std::vector<int32_t> above_;         // Numbers of nodes above cuts.
};

}  // namespace

TreeParts ChooseParts(const Linearized& structure, int threads, const BatchTime& time) {
  return PartChooser(structure, threads, time).Choose();
}

Status EachPart(const TreeParts& parts, const std::function<Status(size_t part)>& run) {
  std::vector<Status> failed(parts.parts.size());
  ParallelFor(static_cast<int64_t>(parts.parts.size()), 1, [&](int64_t begin, int64_t end) {
    const SerialLoops serial;
    for (int64_t part = begin; part < end; ++part)
      failed[static_cast<size_t>(part)] = run(static_cast<size_t>(part));
  });
  for (const Status& status : failed) HEDDLE_RETURN_IF_ERROR(status);
  return OkStatus();
}

std::string ToText(const TreeParts& parts) {
  if (parts.parts.empty()) return "levels";
  return fmt::format("{} over {} threads", parts.rest.empty() ? "trees" : "subtrees below a cut",
                     parts.parts.size());
}

}  // namespace heddle::ops
