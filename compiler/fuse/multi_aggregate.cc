// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/multi_aggregate.h"

#include <algorithm>

#include "core/programs/fused_operator.h"
#include "ops/aggregate/aggregate.h"

namespace heddle::compiler::fusion {
namespace {

// For every node, which of the aggregates it needs, by data or by order. Bit i of a set: aggregate i.
class Dependencies {
 public:
  Dependencies(const Dag& dag, const std::vector<NodeId>& aggregates) : count_(aggregates.size()) {
    words_ = (count_ + 63) / 64;
    std::vector<uint64_t> sets(dag.nodes.size() * words_, 0);
    std::vector<int> index(dag.nodes.size(), -1);
    for (size_t i = 0; i < count_; ++i) index[static_cast<size_t>(aggregates[i])] = static_cast<int>(i);
    needs_.assign(count_ * words_, 0);
    for (NodeId id = 0; id < dag.size(); ++id) {
      uint64_t* const own = &sets[static_cast<size_t>(id) * words_];
      const Node& node = (*dag.graph)[id];
      for (const std::vector<NodeId>* list : {&node.inputs, &node.after})
        for (NodeId earlier : *list) {
          if (earlier == kNoNode) continue;
          for (size_t w = 0; w < words_; ++w) own[w] |= sets[static_cast<size_t>(earlier) * words_ + w];
          const int at = index[static_cast<size_t>(earlier)];
          if (at >= 0) own[at / 64] |= uint64_t{1} << (at % 64);
        }
      const int at = index[static_cast<size_t>(id)];
      if (at >= 0) std::copy(own, own + words_, &needs_[static_cast<size_t>(at) * words_]);
    }
  }

  bool Needs(size_t a, size_t b) const { return (needs_[a * words_ + b / 64] >> (b % 64) & 1) != 0; }

 private:
  size_t count_, words_ = 0;
  std::vector<uint64_t> needs_;
};

// Groups of aggregates as one node each: is there a way from a group back to itself?
bool HasCycle(const Dependencies& dependencies, const std::vector<int>& group_of, int start) {
  const size_t count = group_of.size();
  std::vector<bool> seen(count, false);
  std::vector<size_t> work;
  const auto push = [&](int group) {
    for (size_t i = 0; i < count; ++i)
      if (group_of[i] == group && !seen[i]) {
        seen[i] = true;
        work.push_back(i);
      }
  };
  push(start);
  while (!work.empty()) {
    const size_t from = work.back();
    work.pop_back();
    for (size_t to = 0; to < count; ++to) {
      if (!dependencies.Needs(from, to)) continue;
      if (group_of[to] == start) return true;
      if (!seen[to]) push(group_of[to]);
    }
  }
  return false;
}

bool ShareInput(const std::vector<NodeId>& a, const std::vector<NodeId>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](NodeId id) { return std::binary_search(b.begin(), b.end(), id); });
}

// Cells of one shape; along non-zeros there are only sums.
bool AreReducedTogether(const Dag& dag, NodeId a, NodeId b) {
  const DagNode &x = dag[dag[a].inputs[0]], &y = dag[dag[b].inputs[0]];
  const auto join = [&](NodeId id) { return ops::JoinOf(ops::FindAggregate((*dag.graph)[id].op)->kind); };
  return x.rows == y.rows && x.columns == y.columns && ((!x.sparse && !y.sparse) || join(a) == join(b));
}

std::vector<std::vector<NodeId>> Merge(const Dag& dag, const std::vector<ChosenAggregate>& aggregates,
                                       const std::function<bool(size_t a, size_t b)>& wanted) {
  std::vector<NodeId> nodes;
  for (const ChosenAggregate& aggregate : aggregates) nodes.push_back(aggregate.node);
  const size_t count = nodes.size();
  if (count < 2) return {};
  const Dependencies dependencies(dag, nodes);
  std::vector<int> group_of(count);
  std::vector<std::vector<size_t>> groups(count);
  for (size_t i = 0; i < count; ++i) {
    group_of[i] = static_cast<int>(i);
    groups[i] = {i};
  }
  const auto can_join = [&](size_t a, size_t b) {
    if (groups[a].empty() || groups[b].empty() ||
        groups[a].size() + groups[b].size() > FusedOperator::kMostAggregates)
      return false;
    for (size_t i : groups[a])
      for (size_t j : groups[b])
        if (!AreReducedTogether(dag, nodes[i], nodes[j]) || dependencies.Needs(i, j) ||
            dependencies.Needs(j, i))
          return false;
    for (size_t i : groups[a])
      for (size_t j : groups[b])
        if (wanted(i, j)) return true;
    return false;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t a = 0; a < count; ++a)
      for (size_t b = a + 1; b < count; ++b) {
        if (!can_join(a, b)) continue;
        const std::vector<int> before = group_of;
        for (size_t i : groups[b]) group_of[i] = static_cast<int>(a);
        if (HasCycle(dependencies, group_of, static_cast<int>(a))) {
          group_of = before;
          continue;
        }
        groups[a].insert(groups[a].end(), groups[b].begin(), groups[b].end());
        groups[b].clear();
        changed = true;
      }
  }
  std::vector<std::vector<NodeId>> result;
  for (std::vector<size_t>& group : groups) {
    if (group.size() < 2) continue;
    std::sort(group.begin(), group.end());
    result.emplace_back();
    for (size_t i : group) result.back().push_back(nodes[i]);
  }
  return result;
}

}  // namespace

bool IsFullAggregate(const Dag& dag, NodeId id) {
  return dag[id].op != nullptr && dag[id].op->fusion.use == ops::RowUse::kFullAggregate;
}

std::vector<std::vector<NodeId>> MergeAggregates(const Dag& dag, std::vector<ChosenAggregate> aggregates,
                                                 const std::function<bool(NodeId a, NodeId b)>& wanted) {
  std::sort(aggregates.begin(), aggregates.end(),
            [](const ChosenAggregate& a, const ChosenAggregate& b) { return a.node < b.node; });
  return Merge(dag, aggregates, [&](size_t a, size_t b) {
    const ChosenAggregate &x = aggregates[a], &y = aggregates[b];
    return x.by_nonzeros == y.by_nonzeros &&
           ((x.group >= 0 && x.group == y.group) || ShareInput(x.inputs, y.inputs)) && wanted(x.node, y.node);
  });
}

std::vector<std::vector<NodeId>> GroupAggregates(const Dag& dag, const std::vector<NodeId>& roots) {
  std::vector<ChosenAggregate> aggregates;
  for (NodeId root : roots)
    if (IsFullAggregate(dag, root)) aggregates.push_back({root, {}, dag[dag[root].inputs[0]].sparse});
  return Merge(dag, aggregates,
               [&](size_t a, size_t b) { return aggregates[a].by_nonzeros == aggregates[b].by_nonzeros; });
}

}  // namespace heddle::compiler::fusion
