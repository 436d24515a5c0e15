// SPDX-License-Identifier: Apache-2.0
#include "scheduler/spread_whole.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "scheduler/estimate.h"
#include "scheduler/transition.h"

namespace heddle::scheduler {
namespace {

class Spreader {
 public:
  Spreader(const Graph& graph, const ScheduleOptions& options, std::vector<Placement>* placements)
      : graph_(graph), options_(options), placements_(*placements), leader_(graph.nodes.size()) {
    std::iota(leader_.begin(), leader_.end(), 0);
  }

  void Run() {
    for (NodeId id = 0; id < graph_.size(); ++id)
      for (const NodeId input : graph_[id].inputs)
        if (input != kNoNode && IsFree(id) && IsFree(Root(input)))
          leader_[Index(Find(id))] = Find(Root(input));
    std::map<NodeId, double> work;
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (IsFree(id)) work[Find(id)] += NodeNs(graph_, graph_[id], options_.constants);
    std::vector<std::pair<double, NodeId>> groups;
    for (const auto& [leader, ns] : work)
      if (ns > MoveNs(leader)) groups.emplace_back(-ns, leader);
    if (groups.size() < 2) return;
    std::sort(groups.begin(), groups.end());  // The longest first; of equal ones that of the script.
    std::vector<double> load(static_cast<size_t>(options_.ranks), 0);
    for (const auto& [ns, leader] : groups) {
      const auto least = std::min_element(load.begin(), load.end());
      *least -= ns;
      Move(leader, static_cast<int32_t>(least - load.begin()));
    }
  }

 private:
  static size_t Index(NodeId id) { return static_cast<size_t>(id); }
  NodeId Root(NodeId value) const { return graph_[value].Is("result") ? graph_[value].inputs[0] : value; }
  NodeId Find(NodeId id) {
    while (leader_[Index(id)] != id) id = leader_[Index(id)] = leader_[Index(leader_[Index(id)])];
    return id;
  }

  bool IsFree(NodeId id) const {
    const Placement& placement = placements_[Index(id)];
    if (placement.split || placement.result != Distribution::One()) return false;
    const ops::Operator* const op = ops::FindOperator(graph_[id].op);
    return op != nullptr && op->pure && !op->effect && !op->files && !op->updates;
  }

  // Of bringing the operands of a group to another rank, and its results back.
  double MoveNs(NodeId leader) {
    double bytes = 0;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      for (const NodeId input : graph_[id].inputs) {
        if (input == kNoNode) continue;
        const NodeId root = Root(input);
        const bool is_of = IsFree(id) && Find(id) == leader,
                   comes_from = IsFree(root) && Find(root) == leader;
        if (is_of != comes_from && !placements_[Index(root)].result.IsEach())
          bytes += BytesToMove(graph_[input].info);
      }
    }
    return 2 * NanosecondsOf(Transition{.slowest_bytes = bytes / 2, .messages = 1}, options_.constants);
  }

  void Move(NodeId leader, int32_t rank) {
    if (rank == 0) return;
    const Distribution there = Distribution::One(rank);
    const auto move = [&](NodeId id) {
      Placement& placement = placements_[Index(id)];
      for (Distribution& input : placement.inputs)
        if (input.IsOne()) input = there;
      placement.result = placement.reduced = there;
    };
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (IsFree(id) && Find(id) == leader) members_.push_back(id);
      const bool follows =
          (node.Is("result") || node.Is("assign")) && placements_[Index(id)].result == Distribution::One();
      const bool is_wanted = node.Is("assign") && options_.live_out.contains(node.Text("name"));
      if (follows && !is_wanted &&
          std::find(members_.begin(), members_.end(), node.inputs[0]) != members_.end())
        members_.push_back(id);
    }
    for (const NodeId id : members_) move(id);
    members_.clear();
  }

  const Graph& graph_;
  const ScheduleOptions& options_;
  std::vector<Placement>& placements_;
  std::vector<NodeId> leader_;   // By node, toward the first of its group.
  std::vector<NodeId> members_;  // Of the group that moves.
};

}  // namespace

void SpreadWhole(const Graph& graph, const ScheduleOptions& options, std::vector<Placement>* placements) {
  if (options.ranks > 1) Spreader(graph, options, placements).Run();
}

}  // namespace heddle::scheduler
