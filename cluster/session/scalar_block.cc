// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/scalar_block.h"

#include "ops/operator.h"

namespace heddle::cluster {
namespace {

Scalar SizeOf(const Node& node, const Shape& shape) { return ops::FindOperator(node.op)->size_of(shape); }

}  // namespace

ScalarBlocks::Prepared ScalarBlocks::Prepare(const Graph& graph) {
  Prepared prepared;
  for (const Node& node : graph.nodes) {
    StepKind kind = StepKind::kPure;
    if (node.Is("literal")) {
      kind = StepKind::kLiteral;
    } else if (node.Is("variable")) {
      kind = StepKind::kVariable;
    } else if (node.Is("assign")) {
      kind = StepKind::kAssign;
    } else if (node.Is("print")) {
      kind = StepKind::kPrint;
    } else if (node.Is("stop") || node.Is("assert")) {
      kind = StepKind::kCheck;
    } else {
      const ops::Operator* op = ops::FindOperator(node.op);
      if (op == nullptr || !op->pure || op->effect || node.info.IsTabular()) prepared.possible = false;
      if (op != nullptr && op->size_of != nullptr) kind = StepKind::kSize;
    }
    prepared.steps.push_back(kind);
  }
  return prepared;
}

Result<bool> ScalarBlocks::Evaluate(const Graph& graph, Frame* frame) {
  auto [found, fresh] = prepared_.try_emplace(&graph);
  if (fresh) found->second = Prepare(graph);
  return Run(graph, &found->second, frame);
}

Result<bool> ScalarBlocks::EvaluateOnce(const Graph& graph, Frame* frame) {
  Prepared prepared = Prepare(graph);
  return Run(graph, &prepared, frame);
}

Result<bool> ScalarBlocks::Run(const Graph& graph, Prepared* prepared, Frame* frame) {
  if (!prepared->possible) return false;
  if (slots_.size() < graph.nodes.size()) slots_.resize(graph.nodes.size());
  if (!Compute(graph, prepared, *frame)) return false;

  // Variables that are renamed may be the ones that are assigned: read all before writing any.
  std::vector<std::pair<const std::string*, Variable>> assigned;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    switch (prepared->steps[static_cast<size_t>(id)]) {
      case StepKind::kPrint:
        if (rank_ == 0) HEDDLE_RETURN_IF_ERROR(Act(node));
        break;
      case StepKind::kCheck: HEDDLE_RETURN_IF_ERROR(Act(node)); break;
      case StepKind::kAssign: {
        const Slot& slot = slots_[static_cast<size_t>(node.inputs[0])];
        assigned.emplace_back(&node.Text("name"),
                              slot.scalar != nullptr ? Variable::OfScalar(*slot.scalar) : *slot.variable);
        break;
      }
      default: break;
    }
  }
  for (auto& [name, variable] : assigned) frame->Set(*name, std::move(variable));
  return true;
}

bool ScalarBlocks::Compute(const Graph& graph, Prepared* prepared, const Frame& frame) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    Slot& slot = slots_[static_cast<size_t>(id)];
    slot.scalar = nullptr;
    slot.variable = nullptr;
    switch (prepared->steps[static_cast<size_t>(id)]) {
      case StepKind::kLiteral: slot.scalar = node.FindAttribute("value"); break;
      case StepKind::kVariable:
        slot.variable = frame.Find(node.Text("name"));
        if (slot.variable == nullptr) return false;  // inference says it better
        if (slot.variable->info.IsScalar()) slot.scalar = &slot.variable->value.scalar();
        break;
      case StepKind::kAssign: break;
      case StepKind::kPrint:
      case StepKind::kCheck:
        if (slots_[static_cast<size_t>(node.inputs[0])].scalar == nullptr) return false;
        break;
      case StepKind::kSize:
        if (const Variable* variable = slots_[static_cast<size_t>(node.inputs[0])].variable;
            variable != nullptr && variable->info.IsTabular()) {
          slot.own = SizeOf(node, variable->info.shape);
          slot.scalar = &slot.own;
          break;
        }
        [[fallthrough]];
      case StepKind::kPure: {
        inputs_.clear();
        for (NodeId input : node.inputs) {
          inputs_.push_back(input == kNoNode ? nullptr : slots_[static_cast<size_t>(input)].scalar);
          if (input != kNoNode && inputs_.back() == nullptr) return false;
        }
        Result<Scalar> result = ops::EvaluateScalar(node, inputs_);
        if (!result.ok()) {  // the plan tells the error, after the effects that come before it
          if (result.status().code() == StatusCode::kUnimplemented) prepared->possible = false;
          return false;
        }
        slot.own = *std::move(result);
        slot.scalar = &slot.own;
        break;
      }
    }
  }
  return true;
}

Status ScalarBlocks::Act(const Node& node) {
  const Slot& slot = slots_[static_cast<size_t>(node.inputs[0])];
  const Value value(*slot.scalar);
  const Value* const inputs[] = {&value};
  const ValueInfo infos[] = {ValueInfo::OfScalar(slot.scalar->type())};
  Result<Value> result = kernels_.Run({node, Phase::kWhole, inputs, infos, 0, 0, 0, context_});
  return result.status().At(node.position);
}

}  // namespace heddle::cluster
