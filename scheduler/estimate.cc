// SPDX-License-Identifier: Apache-2.0
#include "scheduler/estimate.h"

#include <algorithm>
#include <vector>

#include "ops/base/stages.h"

namespace heddle::scheduler {
namespace {

// Times as long as moving their bytes take operators that state no cost of their own (order, table).
constexpr double kUnknownWork = 10;
constexpr double kMostNs = 1e15;

double BytesOf(const ValueInfo& info) {
  if (!info.IsSized()) return 0;
  if (!info.IsMatrix()) return static_cast<double>(KnownBytes(info));
  return static_cast<double>(heddle::BytesOf(info.element_type)) * static_cast<double>(info.shape.Cells());
}

double ResultBytes(const Node& node) {
  double bytes = 0;
  for (const ValueInfo& result : ResultsOf(node)) bytes += BytesOf(result);
  return bytes;
}

}  // namespace

double NodeNs(const Graph& graph, const Node& node, const ops::MachineConstants& constants) {
  const ops::Operator* op = ops::FindOperator(node.op);
  if (op == nullptr) return 0;
  std::vector<ValueInfo> inputs;
  for (NodeId input : node.inputs) inputs.push_back(input == kNoNode ? ValueInfo{} : graph[input].info);
  return ops::NanosecondsOf(ops::CostOf(node, inputs), constants) * (op->cost == nullptr ? kUnknownWork : 1);
}

std::vector<double> NodesNs(const Graph& graph, const ops::MachineConstants& constants) {
  std::vector<double> ns;
  for (const Node& node : graph.nodes) ns.push_back(NodeNs(graph, node, constants) + constants.operator_ns);
  return ns;
}

int64_t EstimateNs(const Graph& graph, const Task& task, const ops::MachineConstants& constants) {
  const bool computes =
      task.kind == TaskKind::kCompute || task.kind == TaskKind::kSource || task.kind == TaskKind::kSink;
  if (task.node == kNoNode || !computes) return 0;
  const Node& node = graph[task.node];
  const ops::Operator* const op = ops::FindOperator(node.op);
  const bool in_parts = op != nullptr && ops::PartsFormOf(*op).second != nullptr;
  // Between stages mostly little is gathered; of an operator with a row rule, too, or with a form by columns
  // alone it is mostly the result.
  if (task.phase == Phase::kGather && op != nullptr && op->staged != nullptr && op->row_rule == nullptr &&
      op->staged->axis == Axis::kRows)
    return 0;
  if (task.phase == Phase::kGather || task.phase == Phase::kTransfer)
    return static_cast<int64_t>(std::min(2 * BytesOf(node.info) / constants.read_bytes_per_ns, kMostNs));
  if (task.phase == Phase::kSlice || task.phase == Phase::kShape || task.phase == Phase::kReady ||
      task.phase == Phase::kPanels)
    return 0;
  if (node.Is("variable") || node.Is("literal") || node.Is("assign")) return 0;
  if (op != nullptr && op->files) return kUnboundedCost;
  double ns = NodeNs(graph, node, constants);
  if (task.phase == Phase::kFinish) {
    ns = ResultBytes(node) / constants.write_bytes_per_ns;
  } else if (task.phase == Phase::kStage && in_parts) {  // Some units of the result.
    const double share =
        static_cast<double>(task.row_end - task.row_begin) / static_cast<double>(task.total_rows);
    ns = ResultBytes(node) * share / constants.write_bytes_per_ns;
  } else if (task.total_rows > 0) {
    ns *= static_cast<double>(task.row_end - task.row_begin) / static_cast<double>(task.total_rows);
  }
  return static_cast<int64_t>(std::min(ns, kMostNs));
}

}  // namespace heddle::scheduler
