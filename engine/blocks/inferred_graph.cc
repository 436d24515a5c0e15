// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/inferred_graph.h"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/variables/live_in.h"
#include "ops/base/operator.h"

namespace heddle::engine {

InferredGraph::InferredGraph(Graph graph, ElementType element_type)
    : graph_(std::move(graph)), scalars_(graph_.nodes.size()), inference_(nullptr, element_type) {}

bool InferredGraph::Infer(const VariableTable& frame, bool knows_scalars) {
  for (NodeId id = 0; id < graph_.size(); ++id) {
    Node& node = graph_[id];
    std::optional<Scalar>& scalar = scalars_[static_cast<size_t>(id)];
    if (node.inputs.empty() && node.op == "literal" && scalar) continue;
    if (!node.inputs.empty() || node.op != "variable") {
      scalar.reset();
      if (!inference_.Infer(graph_, scalars_, id).ok()) return false;
      continue;
    }
    const Variable* variable = frame.Find(node.Text("name"));
    if (variable == nullptr || variable->info.data_type == DataType::kList) return false;
    compiler::LiveIn live_in = LiveInOf(*variable);
    node.info = std::move(live_in.info);
    scalar = knows_scalars ? std::move(live_in.value) : std::nullopt;
  }
  return true;
}

bool InferredGraph::IsComplete() const {
  return std::ranges::all_of(graph_.nodes, [](const Node& node) {
    if (std::ranges::all_of(ResultsOf(node), &ValueInfo::IsSized)) return true;
    const ops::Operator* op = ops::FindOperator(node.op);
    return op != nullptr && op->effect;
  });
}

bool InferredGraph::IsFreeOfScalars(const VariableTable& frame) const {
  InferredGraph without(graph_, ElementType::kFloat64);
  without.inference_ = inference_;
  if (!without.Infer(frame, /*knows_scalars=*/false)) return false;
  for (NodeId id = 0; id < graph_.size(); ++id)
    if (!(graph_[id].info == without.graph_[id].info) || graph_[id].results != without.graph_[id].results)
      return false;
  return true;
}

}  // namespace heddle::engine
