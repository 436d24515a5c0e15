// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/scalar_block.h"

#include <utility>

#include "core/memory/counted_heap.h"
#include "core/programs/program.h"
#include "ops/base/operator.h"

namespace heddle::engine {
namespace {

// Whether the operator is defined on scalars, given that so many inputs are there.
bool IsOnScalars(const ops::Operator& op, const Node& node, size_t inputs) {
  const auto least = static_cast<size_t>(op.min_inputs);
  if (op.evaluate == nullptr || inputs < least ||
      (op.max_inputs >= 0 && inputs > static_cast<size_t>(op.max_inputs)))
    return false;
  for (size_t i = 0; i < least; ++i)
    if (node.inputs[i] == kNoNode) return false;
  return true;
}

}  // namespace

ScalarBlocks::Prepared ScalarBlocks::Prepare(const Graph& graph) {
  Prepared prepared;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    Prepared::Step step;
    step.inputs = node.inputs.size();
    while (step.inputs > 0 && node.inputs[step.inputs - 1] == kNoNode) --step.inputs;
    if (node.Is("literal")) {
      step.kind = StepKind::kLiteral;
      step.literal = node.FindAttribute("value");
    } else if (node.Is("variable")) {
      step.kind = StepKind::kVariable;
      step.name = &node.Text("name");
    } else if (node.Is("assign")) {
      step.kind = StepKind::kAssign;
      step.name = &node.Text("name");
      prepared.assigns.push_back(id);
    } else if (node.Is("print")) {
      step.kind = StepKind::kPrint;
      prepared.acts = true;
    } else if (node.Is("stop") || node.Is("assert")) {
      step.kind = StepKind::kCheck;
      prepared.acts = true;
    } else {
      step.op = ops::FindOperator(node.op);
      if (step.op != nullptr && step.op->size_of != nullptr) {
        step.kind = StepKind::kSize;
      } else if (step.op == nullptr || !step.op->pure || step.op->effect || node.info.IsTabular() ||
                 !IsOnScalars(*step.op, node, step.inputs)) {
        prepared.possible = false;
      }
    }
    prepared.steps.push_back(step);
  }
  for (const NodeId id : prepared.assigns)
    prepared.renames = prepared.renames || graph[graph[id].inputs[0]].Is("variable");
  if (!prepared.acts && prepared.assigns.size() == 1) {
    const Node& assign = graph[prepared.assigns[0]];
    if (assign.Text("name") == Block::kPredicate) prepared.decision = assign.inputs[0];
  }
  return prepared;
}

Result<bool> ScalarBlocks::EvaluateOnce(const Graph& graph, VariableTable* frame) {
  Prepared prepared = Prepare(graph);
  return Evaluate(graph, &prepared, frame);
}

Result<bool> ScalarBlocks::Evaluate(const Graph& graph, Prepared* prepared, VariableTable* frame) {
  if (!prepared->possible || !Compute(graph, prepared, *frame)) return false;
  if (prepared->acts) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      const StepKind kind = prepared->steps[static_cast<size_t>(id)].kind;
      if (kind == StepKind::kCheck || (kind == StepKind::kPrint && rank_ == 0))
        HEDDLE_RETURN_IF_ERROR(Act(graph[id]));
    }
  }
  Assign(graph, *prepared, frame);
  return true;
}

const Scalar* ScalarBlocks::Decide(const Graph& graph, Prepared* prepared, const VariableTable& frame) {
  if (!prepared->possible || prepared->decision == kNoNode || !Compute(graph, prepared, frame))
    return nullptr;
  return slots_[static_cast<size_t>(prepared->decision)].scalar;
}

// Variables that are renamed may be the ones that are assigned: all are read before any is written.
void ScalarBlocks::Assign(const Graph& graph, const Prepared& prepared, VariableTable* frame) {
  std::vector<std::pair<const std::string*, Variable>> renamed;
  for (const NodeId id : prepared.assigns) {
    Slot& slot = slots_[static_cast<size_t>(graph[id].inputs[0])];
    if (slot.variable == nullptr) continue;
    if (slot.scalar == nullptr) {
      renamed.emplace_back(prepared.steps[static_cast<size_t>(id)].name, *slot.variable);
    } else {
      slot.own = *slot.scalar;
      slot.scalar = &slot.own;
    }
  }
  for (const NodeId id : prepared.assigns) {
    const Slot& slot = slots_[static_cast<size_t>(graph[id].inputs[0])];
    if (slot.scalar != nullptr) frame->SetScalar(*prepared.steps[static_cast<size_t>(id)].name, *slot.scalar);
  }
  for (auto& [name, variable] : renamed) frame->Set(*name, std::move(variable));
}

bool ScalarBlocks::Compute(const Graph& graph, Prepared* prepared, const VariableTable& frame) {
  if (slots_.size() < graph.nodes.size()) slots_.resize(graph.nodes.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    Slot& slot = slots_[static_cast<size_t>(id)];
    slot.scalar = nullptr;
    slot.variable = nullptr;
    const Prepared::Step& step = prepared->steps[static_cast<size_t>(id)];
    switch (step.kind) {
      case StepKind::kLiteral: slot.scalar = step.literal; break;
      case StepKind::kVariable:
        slot.variable = frame.Find(*step.name);
        if (slot.variable == nullptr) return false;  // inference says it better
        if (slot.variable->info.IsScalar()) slot.scalar = &slot.variable->value.scalar();
        break;
      case StepKind::kAssign: break;
      case StepKind::kPrint:
      case StepKind::kCheck:
        if (slots_[static_cast<size_t>(graph[id].inputs[0])].scalar == nullptr) return false;
        break;
      case StepKind::kSize: {
        const Variable* variable = slots_[static_cast<size_t>(graph[id].inputs[0])].variable;
        if (variable == nullptr || !variable->info.IsTabular()) return false;
        slot.own = Scalar(step.op->size_of(variable->info.shape));
        slot.scalar = &slot.own;
        break;
      }
      case StepKind::kPure:
        if (!ComputeNode(graph, id, prepared)) return false;
        break;
    }
  }
  return true;
}

bool ScalarBlocks::ComputeNode(const Graph& graph, NodeId id, Prepared* prepared) {
  const Node& node = graph[id];
  const Prepared::Step& step = prepared->steps[static_cast<size_t>(id)];
  inputs_.clear();
  for (size_t i = 0; i < step.inputs; ++i) {
    const NodeId input = node.inputs[i];
    inputs_.push_back(input == kNoNode ? nullptr : slots_[static_cast<size_t>(input)].scalar);
    if (input != kNoNode && inputs_.back() == nullptr) return false;
  }
  Result<Scalar> result = WithinMemory(node.op, [&] { return step.op->evaluate(*step.op, node, inputs_); });
  if (!result.ok()) {  // the plan tells the error, after the effects that come before it
    if (result.status().code() == StatusCode::kUnimplemented) prepared->possible = false;
    return false;
  }
  Slot& slot = slots_[static_cast<size_t>(id)];
  slot.own = *std::move(result);
  slot.scalar = &slot.own;
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

}  // namespace heddle::engine
