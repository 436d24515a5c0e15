// SPDX-License-Identifier: Apache-2.0
#include "ops/base/graph_run.h"

#include <algorithm>
#include <array>

#include "core/programs/input_infos.h"
#include "ops/base/operator.h"

namespace heddle::ops {

GraphStep StepOf(const Node& node) {
  if (node.Is("literal")) return {.kind = GraphStep::Kind::kLiteral, .literal = node.FindAttribute("value")};
  if (node.Is("variable")) return {.kind = GraphStep::Kind::kVariable, .name = &node.Text("name")};
  if (node.Is("assign")) return {.kind = GraphStep::Kind::kAssign, .name = &node.Text("name")};
  if (node.Is("result")) return {.kind = GraphStep::Kind::kResult};
  return {.op = FindOperator(node.op)};
}

void SetSizes(const Graph& graph, OperatorStep* step) {
  const Node& node = graph[step->node];
  step->input_infos = InputInfos(graph, node);
  step->row_begin = 0;
  step->row_end = step->total_rows = TotalRowsOf(*step->op, node, step->input_infos);
}

GraphLayout::GraphLayout(const Graph& graph) : places_(graph.nodes.size()) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    Place& place = places_[static_cast<size_t>(id)];
    if (node.Is("result")) {
      place.first = places_[static_cast<size_t>(node.inputs[0])].first + node.ResultIndex();
      continue;
    }
    place = {values_, std::max<size_t>(1, ResultsOf(node).size())};
    values_ += place.count;
  }
}

GraphValues::GraphValues(const Graph& graph, const GraphLayout& layout)
    : graph_(graph), layout_(layout), values_(graph.nodes.size()), own_(layout.values_) {
  for (size_t i = 0; i < values_.size(); ++i) values_[i] = &own_[layout.places_[i].first];
}

void GraphValues::Reset(NodeId node) {
  const std::span<Value> own = Own(node);
  for (Value& value : own) value = Value();
  values_[Index(node)] = own.data();
}

KernelCall CallOf(const Graph& graph, const OperatorStep& step, std::span<const Value* const> inputs,
                  KernelContext& context) {
  return {.node = graph[step.node],
          .phase = Phase::kWhole,
          .inputs = inputs,
          .input_infos = step.input_infos,
          .row_begin = step.row_begin,
          .row_end = step.row_end,
          .total_rows = step.total_rows,
          .context = context,
          .op = step.op};
}

Status GraphValues::Run(const OperatorStep& step, const KernelSource& kernels, KernelContext& context) {
  const Node& node = graph_[step.node];
  std::array<const Value*, 16> few;
  std::vector<const Value*> many;
  if (node.inputs.size() > few.size()) many.resize(node.inputs.size());
  const std::span inputs(many.empty() ? few.data() : many.data(), node.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = Of(node.inputs[i]);
  KernelCall call = CallOf(graph_, step, inputs, context);
  call.last_read = step.reads_last ? Own(node.inputs[0]).data() : nullptr;
  const Status status = kernels.Run(call, Own(step.node));
  return status.ok() ? status : status.At(node.position);
}

}  // namespace heddle::ops
