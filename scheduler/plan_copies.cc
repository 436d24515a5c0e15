// SPDX-License-Identifier: Apache-2.0
// Copies of variables: those that a plan finds, and those that it leaves.
#include <algorithm>
#include <utility>

#include "core/programs/variable_copy.h"
#include "scheduler/plan_builder.h"
#include "scheduler/variable_copies.h"

namespace heddle::scheduler {

NodeId PlanBuilder::AddNodeOfCopy(NodeId id, const Distribution& distribution) {
  Node node = graph_[id];
  node.SetAttribute("name", Scalar(NameOfCopy(node.Text("name"), distribution)));
  return plan_.graph.Add(std::move(node));
}

void PlanBuilder::EmitCopyFound(NodeId id, const Distribution& distribution) {
  const NodeId copy = AddNodeOfCopy(id, distribution);
  const Node& node = plan_.graph[copy];
  plan_.live_in.push_back({node.Text("name"), distribution, node.info, copy});
  auto& pieces = pieces_[{id, distribution}];
  pieces.assign(static_cast<size_t>(ranks_), kNoRegister);
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    if (!distribution.IsHeldBy(rank)) continue;
    const ValueInfo info = distribution.IsSplit() ? PartInfo(node.info, distribution.split, rank) : node.info;
    const size_t source = AddTask(rank, StreamKind::kCompute, TaskKind::kSource, copy, Phase::kWhole, {});
    pieces[static_cast<size_t>(rank)] = AddOutput(source, info);
  }
}

void PlanBuilder::EmitCopiesLeft() {
  if (options_.kept.empty() || ranks_ == 1) return;
  std::vector<MovedVariable> moved;
  for (const auto& [key, registers] : pieces_) {
    const auto& [id, made] = key;
    if (!graph_[id].Is("variable") || HasCopy(options_, graph_[id].Text("name"), made)) continue;
    // Of what some ranks alone have asked for nothing is left.
    bool is_whole = true;
    for (int32_t rank = 0; rank < ranks_; ++rank)
      is_whole &= !made.IsHeldBy(rank) || registers[static_cast<size_t>(rank)] != kNoRegister;
    if (is_whole) moved.push_back({id, placements_[static_cast<size_t>(id)].result, made});
  }
  for (const MovedVariable& each : KeptOf(graph_, options_, std::move(moved))) {
    const NodeId copy = AddNodeOfCopy(each.node, each.made);
    Node& node = plan_.graph[copy];
    node.op = "assign";
    node.inputs = {each.node};
    plan_.live_out.push_back({node.Text("name"), each.made, node.info, copy});
    const std::vector<RegisterId>& registers = pieces_.at({each.node, each.made});
    for (int32_t rank = 0; rank < ranks_; ++rank)
      if (each.made.IsHeldBy(rank))
        AddTask(rank, StreamKind::kCompute, TaskKind::kSink, copy, Phase::kWhole,
                {registers[static_cast<size_t>(rank)]});
  }
}

}  // namespace heddle::scheduler
