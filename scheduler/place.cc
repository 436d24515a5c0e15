// SPDX-License-Identifier: Apache-2.0
#include "scheduler/place.h"

#include <algorithm>

#include "core/panels.h"

namespace heddle::scheduler {
namespace {

int64_t DenseBytes(const ValueInfo& info) {
  return info.IsMatrix() && info.shape.IsKnown() ? info.shape.Cells() * 8 : 0;
}

// Worth cutting: large enough, and more rows than one granule (else one rank would get everything).
bool IsWorthSplitting(const ValueInfo& info, const ScheduleOptions& options) {
  return info.IsMatrix() && info.shape.IsKnown() && info.shape.rows > Granule(info.shape.rows) &&
         DenseBytes(info) >= options.min_distributed_bytes;
}

}  // namespace

Result<std::vector<Placement>> Place(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                                     const ScheduleOptions& options) {
  std::vector<Placement> placements(graph.nodes.size());
  std::vector<ValueInfo> infos;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    Placement& placement = placements[static_cast<size_t>(id)];
    placement.inputs.assign(node.inputs.size(), Distribution::kOne);

    if (node.Is("literal")) {
      placement.result = Distribution::kEach;
      continue;
    }
    if (node.Is("variable")) {
      auto found = live_in.find(node.Text("name"));
      if (found == live_in.end()) return Internal("variable {} has no distribution", node.Text("name"));
      placement.result = options.ranks == 1 && !node.info.IsScalar() ? Distribution::kOne : found->second;
      continue;
    }
    infos.clear();
    for (NodeId input : node.inputs) infos.push_back(input == kNoNode ? ValueInfo{} : graph[input].info);
    auto distribution_of = [&](size_t i) { return placements[static_cast<size_t>(node.inputs[i])].result; };

    if (node.Is("assign")) {
      placement.result = node.info.IsScalar() ? Distribution::kEach : distribution_of(0);
      placement.inputs[0] = placement.result;
      continue;
    }
    const ops::Operator* op = ops::FindOperator(node.op);
    if (op == nullptr) return Internal("unknown operator {}", node.op).At(node.position);

    // Scalars computed from scalars that every rank has: every rank computes them.
    const bool only_scalars = std::all_of(infos.begin(), infos.end(), [](const ValueInfo& info) { return !info.IsMatrix(); });
    if (only_scalars && node.info.IsScalar() && !op->effect && op->pure) {
      bool everywhere = true;
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] != kNoNode) everywhere = everywhere && distribution_of(i) == Distribution::kEach;
      if (everywhere) {
        placement.result = Distribution::kEach;
        std::fill(placement.inputs.begin(), placement.inputs.end(), Distribution::kEach);
        continue;
      }
    }

    placement.rule = op->effect ? ops::RowRule::kWhole : ops::RowRuleOf(node, infos);
    if (options.ranks == 1 || placement.rule == ops::RowRule::kWhole) continue;

    if (placement.rule == ops::RowRule::kGenerate) {
      placement.split = IsWorthSplitting(node.info, options);
      placement.total_rows = node.info.shape.rows;
    } else {
      for (size_t i = 0; i < infos.size(); ++i) {
        if (node.inputs[i] == kNoNode || ops::InputUseOf(node, infos, static_cast<int>(i)) != ops::InputUse::kRows) continue;
        placement.total_rows = infos[i].shape.rows;
        placement.split = placement.split || distribution_of(i) == Distribution::kSplit || IsWorthSplitting(infos[i], options);
      }
      // The result of a row-wise operator may be what is large (an outer product of two vectors).
      if (placement.rule == ops::RowRule::kRowWise && placement.total_rows > 0)
        placement.split = placement.split || IsWorthSplitting(node.info, options);
    }
    if (!placement.split) continue;
    for (size_t i = 0; i < infos.size(); ++i) {
      const bool by_rows = node.inputs[i] != kNoNode && ops::InputUseOf(node, infos, static_cast<int>(i)) == ops::InputUse::kRows;
      placement.inputs[i] = by_rows ? Distribution::kSplit : Distribution::kEach;
    }
    placement.result = placement.rule == ops::RowRule::kReduce ? Distribution::kOne : Distribution::kSplit;
  }
  return placements;
}

}  // namespace heddle::scheduler
