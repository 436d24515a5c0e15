// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/partition.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "compiler/fuse/multi_aggregate.h"

namespace heddle::compiler::fusion {
namespace {

class UnionFind {
 public:
  explicit UnionFind(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  NodeId Find(NodeId id) {
    while (parent_[static_cast<size_t>(id)] != id) {
      NodeId& parent = parent_[static_cast<size_t>(id)];
      parent = parent_[static_cast<size_t>(parent)];
      id = parent;
    }
    return id;
  }
  void Join(NodeId a, NodeId b) { parent_[static_cast<size_t>(Find(a))] = Find(b); }

 private:
  std::vector<NodeId> parent_;
};

bool Contains(const std::vector<NodeId>& sorted, NodeId id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

bool HasReference(const std::vector<Entry>& group, NodeId target) {
  return std::any_of(group.begin(), group.end(),
                     [target](const Entry& entry) { return entry.Refers(target); });
}

// The template that ends at the target is none of those by which the consumer can go on.
bool ChangesTemplate(const std::vector<Entry>& consumer, const std::vector<Entry>& target, NodeId id,
                     int position) {
  bool kinds[kFusionTemplates] = {};
  bool any = false;
  for (const Entry& entry : consumer) {
    if (entry.refs[static_cast<size_t>(position)] != id) continue;
    any = true;
    if (entry.kind != FusionTemplate::kOuter || entry.valid) kinds[static_cast<size_t>(entry.kind)] = true;
  }
  return any && std::any_of(target.begin(), target.end(), [&](const Entry& entry) {
           return entry.valid && entry.References() > 0 && !kinds[static_cast<size_t>(entry.kind)];
         });
}

void FindPoints(const Dag& dag, const Memo& memo, Partition* partition) {
  std::set<std::pair<NodeId, NodeId>> edges;
  const auto add = [&](Point point) {
    if (edges.emplace(point.consumer, point.target).second) partition->points.push_back(point);
  };
  for (NodeId target : partition->materialization)
    for (NodeId consumer : dag[target].consumers)
      // A consumer that cannot compute the target inside has nothing to decide.
      if (Contains(partition->nodes, consumer) && HasReference(memo[consumer], target))
        add({consumer, target});
  for (NodeId consumer : partition->nodes)
    for (int i = 0; i < dag[consumer].arity; ++i) {
      const NodeId target = dag[consumer].inputs[static_cast<size_t>(i)];
      if (target != kNoNode && ChangesTemplate(memo[consumer], memo[target], target, i))
        add({consumer, target});
    }
}

void FindSets(const Dag& dag, const Memo& memo, const std::vector<bool>& referenced, Partition* partition) {
  for (NodeId id : partition->nodes) {
    const bool root = !referenced[static_cast<size_t>(id)];
    if (root) partition->roots.push_back(id);
    if (!root && dag[id].matrix && dag[id].consumers.size() > 1) partition->materialization.push_back(id);
    const auto outside = [&](NodeId consumer) { return !Contains(partition->nodes, consumer); };
    if (!root && std::any_of(dag[id].consumers.begin(), dag[id].consumers.end(), outside))
      partition->external.push_back(id);
    for (NodeId input : dag[id].inputs)
      if (input != kNoNode && dag[input].matrix && !Contains(partition->nodes, input))
        partition->inputs.push_back(input);
  }
  std::sort(partition->inputs.begin(), partition->inputs.end());
  partition->inputs.erase(std::unique(partition->inputs.begin(), partition->inputs.end()),
                          partition->inputs.end());
  FindPoints(dag, memo, partition);
  partition->aggregates = GroupAggregates(dag, partition->roots);
}

}  // namespace

std::vector<Partition> FindPartitions(const Dag& dag, const Memo& memo) {
  UnionFind sets(memo.groups.size());
  std::vector<bool> referenced(memo.groups.size(), false);
  for (NodeId id = 0; id < dag.size(); ++id)
    for (const Entry& entry : memo[id])
      for (NodeId ref : entry.refs)
        if (ref != kNoNode) {
          sets.Join(ref, id);
          referenced[static_cast<size_t>(ref)] = true;
        }
  std::vector<Partition> partitions;
  std::vector<int> of(memo.groups.size(), -1);
  for (NodeId id = 0; id < dag.size(); ++id) {
    if (memo[id].empty()) continue;
    int& index = of[static_cast<size_t>(sets.Find(id))];
    if (index < 0) {
      index = static_cast<int>(partitions.size());
      partitions.emplace_back();
    }
    partitions[static_cast<size_t>(index)].nodes.push_back(id);
  }
  std::erase_if(partitions, [](const Partition& partition) { return partition.nodes.size() == 1; });
  for (Partition& partition : partitions) FindSets(dag, memo, referenced, &partition);
  return partitions;
}

std::string ToText(const std::vector<Point>& points) {
  std::string text;
  for (const Point& point : points) {
    if (!text.empty()) text += ' ';
    text += "(" + std::to_string(point.consumer) + "->" + std::to_string(point.target) + ")";
  }
  return text;
}

}  // namespace heddle::compiler::fusion
