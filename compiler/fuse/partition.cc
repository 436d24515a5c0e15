// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/partition.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "compiler/fuse/stitch.h"
#include "compiler/fuse/template.h"

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
  return std::any_of(group.begin(), group.end(), [target](const Entry& entry) {
    return !entry.JoinsOperators() && entry.Refers(target);
  });
}

// Whether some operator could end at the target by a template that the consumer cannot go on with: storing
// the target is then worth a point even if no other consumer reads it.
bool ChangesTemplate(const std::vector<Entry>& consumer, const std::vector<Entry>& target, NodeId id,
                     int position) {
  bool kinds[kFusionTemplates] = {};
  bool any = false;
  for (const Entry& entry : consumer) {
    if (entry.JoinsOperators() || entry.refs[static_cast<size_t>(position)] != id) continue;
    any = true;
    if (entry.kind != FusionTemplate::kOuter || entry.valid) kinds[static_cast<size_t>(entry.kind)] = true;
  }
  return any && std::any_of(target.begin(), target.end(), [&](const Entry& entry) {
           return entry.valid && entry.References() > 0 && !entry.JoinsOperators() &&
                  !kinds[static_cast<size_t>(entry.kind)];
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
}

// Pairs of nodes that one pass could compute, at heights where passes could save enough traffic. An upper
// bound of the savings: every value of that height is read once less and written once less.
std::vector<std::pair<NodeId, NodeId>> FindLinks(const Dag& dag, const Memo& memo) {
  std::map<NodeId, NodeId> reader;   // The first one of the rows of a matrix.
  std::map<int64_t, double> saving;  // By height: bytes, at most.
  std::vector<std::pair<NodeId, NodeId>> links;
  for (NodeId id = 0; id < dag.size(); ++id)
    for (const Entry& entry : memo[id]) {
      if (!entry.JoinsOperators()) continue;
      for (const NodeId input : dag[id].inputs) {
        if (input == kNoNode || !dag[input].matrix || !kStitchTemplate.fuse(dag, id, input)) continue;
        const auto [first, fresh] = reader.try_emplace(input, id);
        if (!fresh) links.emplace_back(first->second, id);
        if (entry.Refers(input)) links.emplace_back(input, id);
        saving[HeightOf(dag, id)] += 2 * dag[input].bytes;
      }
    }
  std::erase_if(links,
                [&](const auto& link) { return saving[HeightOf(dag, link.second)] < kLeastSavedBytes; });
  return links;
}

// Joins partitions between which a pass could be shared, as long as the joined partition has so few points
// that its search counts stitches.
std::vector<Partition> JoinByStitches(const Dag& dag, const Memo& memo, const std::vector<bool>& referenced,
                                      std::vector<Partition> parts) {
  UnionFind sets(parts.size());
  std::vector<NodeId> part_of(dag.nodes.size(), kNoNode);
  std::vector<size_t> points;
  for (size_t p = 0; p < parts.size(); ++p) {
    points.push_back(parts[p].points.size());
    for (const NodeId id : parts[p].nodes) part_of[static_cast<size_t>(id)] = static_cast<NodeId>(p);
  }
  const std::vector<std::pair<NodeId, NodeId>> links = FindLinks(dag, memo);
  std::vector<bool> changed(parts.size(), false);
  for (const auto& [from, to] : links) {
    const NodeId a = sets.Find(part_of[static_cast<size_t>(from)]),
                 b = sets.Find(part_of[static_cast<size_t>(to)]);
    if (a == b) continue;
    size_t &of_a = points[static_cast<size_t>(a)], &of_b = points[static_cast<size_t>(b)];
    if (of_a > 0 && of_b > 0 && of_a + of_b > kMostStitchedPoints) continue;
    sets.Join(a, b);  // b leads.
    of_b += of_a;
    changed[static_cast<size_t>(b)] = true;
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    const auto leader = static_cast<size_t>(sets.Find(static_cast<NodeId>(p)));
    if (leader == p) continue;
    Partition &from = parts[p], &to = parts[leader];
    to.nodes.insert(to.nodes.end(), from.nodes.begin(), from.nodes.end());
    changed[leader] = true;
    from.nodes.clear();
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    if (!changed[p] || parts[p].nodes.empty()) continue;
    Partition joined{.nodes = std::move(parts[p].nodes)};
    std::sort(joined.nodes.begin(), joined.nodes.end());
    FindSets(dag, memo, referenced, &joined);
    parts[p] = std::move(joined);
  }
  std::erase_if(parts, [](const Partition& part) { return part.nodes.size() < 2; });
  std::sort(parts.begin(), parts.end(),
            [](const Partition& a, const Partition& b) { return a.nodes[0] < b.nodes[0]; });
  return parts;
}

}  // namespace

std::vector<Partition> FindPartitions(const Dag& dag, const Memo& memo) {
  UnionFind sets(memo.groups.size());
  std::vector<bool> referenced(memo.groups.size(), false);
  for (NodeId id = 0; id < dag.size(); ++id)
    for (const Entry& entry : memo[id])
      for (NodeId ref : entry.refs)
        if (ref != kNoNode && !entry.JoinsOperators()) {
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
  for (Partition& partition : partitions) FindSets(dag, memo, referenced, &partition);
  return JoinByStitches(dag, memo, referenced, std::move(partitions));
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
