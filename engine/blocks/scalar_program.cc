// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/scalar_program.h"

#include <utility>

#include "core/memory/counted_heap.h"
#include "core/programs/program.h"
#include "ops/base/operator.h"

namespace heddle::engine {
namespace {

// Whether the operator is defined on scalars, given that so many inputs are there.
bool IsOnScalars(const ops::Operator& op, const Node& node, size_t inputs) {
  const auto least = static_cast<size_t>(op.min_inputs);
  if (op.evaluate == nullptr || !op.pure || op.effect || node.info.IsTabular() || inputs < least ||
      (op.max_inputs >= 0 && inputs > static_cast<size_t>(op.max_inputs)))
    return false;
  for (size_t i = 0; i < least; ++i)
    if (node.inputs[i] == kNoNode) return false;
  return true;
}

}  // namespace

ScalarProgram::ScalarProgram(const Graph& graph) : graph_(graph) {
  steps_.reserve(graph.nodes.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    Step& step = steps_.emplace_back(Step{ops::StepOf(node)});
    step.inputs = node.inputs.size();
    while (step.inputs > 0 && node.inputs[step.inputs - 1] == kNoNode) --step.inputs;
    if (step.kind == Step::Kind::kAssign) assignments_.push_back(id);
    if (step.kind == Step::Kind::kResult) is_possible_ = false;
    if (step.kind != Step::Kind::kOperator) continue;
    if (ops::HasRole(node, ops::Role::kPrint)) {
      step.use = Step::Use::kPrint;
    } else if (ops::HasRole(node, {ops::Role::kStop, ops::Role::kAssert})) {
      step.use = Step::Use::kCheck;
    } else if (step.op != nullptr && step.op->size_of != nullptr) {
      step.use = Step::Use::kSize;
    } else {
      step.use = Step::Use::kCompute;
      if (step.op == nullptr || !IsOnScalars(*step.op, node, step.inputs)) is_possible_ = false;
    }
    has_effects_ = has_effects_ || step.use == Step::Use::kPrint || step.use == Step::Use::kCheck;
  }
  for (const NodeId id : assignments_)
    renames_variables_ = renames_variables_ || graph[graph[id].inputs[0]].Is("variable");
  if (!has_effects_ && assignments_.size() == 1) {
    const Node& assign = graph[assignments_[0]];
    if (assign.Text("name") == Block::kPredicate) predicate_ = assign.inputs[0];
  }
}

Result<bool> ScalarEvaluator::Evaluate(ScalarProgram* program, VariableTable* frame) {
  const bool is_computed = Compute(program, *frame);
  if (!is_computed && refused_memory_.ok()) return false;
  if (program->has_effects_)
    HEDDLE_RETURN_IF_ERROR(PrintAndCheck(*program, is_computed ? program->graph_.size() : computed_));
  if (!is_computed) return std::exchange(refused_memory_, OkStatus());
  Assign(*program, frame);
  return true;
}

Result<const Scalar*> ScalarEvaluator::Decide(ScalarProgram* program, const VariableTable& frame) {
  if (program->predicate_ == kNoNode) return nullptr;
  if (Compute(program, frame)) return At(program->predicate_).scalar;
  if (!refused_memory_.ok()) return std::exchange(refused_memory_, OkStatus());
  return nullptr;
}

Status ScalarEvaluator::PrintAndCheck(const ScalarProgram& program, NodeId end) {
  for (NodeId id = 0; id < end; ++id) {
    const ScalarProgram::Step::Use use = program.steps_[static_cast<size_t>(id)].use;
    if (use == ScalarProgram::Step::Use::kCheck)
      HEDDLE_RETURN_IF_ERROR(PrintOrCheck(program.graph_[id]).OnEveryRank());
    if (use == ScalarProgram::Step::Use::kPrint && rank_ == 0)
      HEDDLE_RETURN_IF_ERROR(PrintOrCheck(program.graph_[id]));
  }
  return OkStatus();
}

// Variables that are renamed may be the ones that are assigned: all are read before any is written.
void ScalarEvaluator::Assign(const ScalarProgram& program, VariableTable* frame) {
  std::vector<std::pair<const std::string*, Variable>> renamed;
  for (const NodeId id : program.assignments_) {
    NodeValue& value = At(program.graph_[id].inputs[0]);
    if (value.variable == nullptr) continue;
    if (value.scalar == nullptr) {
      renamed.emplace_back(program.steps_[static_cast<size_t>(id)].name, *value.variable);
    } else {
      value.own = *value.scalar;
      value.scalar = &value.own;
    }
  }
  for (const NodeId id : program.assignments_) {
    const NodeValue& value = At(program.graph_[id].inputs[0]);
    if (value.scalar != nullptr)
      frame->SetScalar(*program.steps_[static_cast<size_t>(id)].name, *value.scalar);
  }
  for (auto& [name, variable] : renamed) frame->Set(*name, std::move(variable));
}

bool ScalarEvaluator::Compute(ScalarProgram* program, const VariableTable& frame) {
  computed_ = 0;
  if (!program->is_possible_) return false;
  const NodeId size = program->graph_.size();
  if (values_.size() < static_cast<size_t>(size)) values_.resize(static_cast<size_t>(size));
  NodeId id = 0;
  while (id < size && ComputeNode(id, program, frame)) ++id;
  computed_ = id;
  return id == size;
}

// False where a node is no scalar, and no variable that is assigned or whose size is asked for.
inline bool ScalarEvaluator::ComputeNode(NodeId id, ScalarProgram* program, const VariableTable& frame) {
  NodeValue& value = At(id);
  value.scalar = nullptr;
  value.variable = nullptr;
  const ScalarProgram::Step& step = program->steps_[static_cast<size_t>(id)];
  if (step.kind == ScalarProgram::Step::Kind::kLiteral) {
    value.scalar = step.literal;
  } else if (step.kind == ScalarProgram::Step::Kind::kVariable) {
    value.variable = frame.Find(*step.name);
    if (value.variable == nullptr) return false;  // Inference says it better.
    if (value.variable->info.IsScalar()) value.scalar = &value.variable->value.scalar();
  }
  switch (step.use) {
    case ScalarProgram::Step::Use::kNone: return true;
    case ScalarProgram::Step::Use::kPrint:
    case ScalarProgram::Step::Use::kCheck: return At(program->graph_[id].inputs[0]).scalar != nullptr;
    case ScalarProgram::Step::Use::kSize: {
      const Variable* const variable = At(program->graph_[id].inputs[0]).variable;
      if (variable == nullptr || !variable->info.IsTabular()) return false;
      value.own = Scalar(step.op->size_of(variable->info.shape));
      value.scalar = &value.own;
      return true;
    }
    case ScalarProgram::Step::Use::kCompute: return ComputeOperator(id, program);
  }
  return false;
}

bool ScalarEvaluator::ComputeOperator(NodeId id, ScalarProgram* program) {
  const Node& node = program->graph_[id];
  const ScalarProgram::Step& step = program->steps_[static_cast<size_t>(id)];
  inputs_.clear();
  for (size_t i = 0; i < step.inputs; ++i) {
    const NodeId input = node.inputs[i];
    inputs_.push_back(input == kNoNode ? nullptr : At(input).scalar);
    if (input != kNoNode && inputs_.back() == nullptr) return false;
  }
  Result<Scalar> result = WithinMemory(node.op, [&] { return step.op->evaluate(*step.op, node, inputs_); });
  if (!result.ok()) {
    const StatusCode code = result.status().code();
    if (code == StatusCode::kResourceExhausted || code == StatusCode::kInternal) {
      refused_memory_ = result.status().At(node.position);
    } else if (code == StatusCode::kUnimplemented) {
      program->is_possible_ = false;
    }
    return false;  // The plan tells an error of the operator, after the effects that come before it.
  }
  NodeValue& value = At(id);
  value.own = *std::move(result);
  value.scalar = &value.own;
  return true;
}

Status ScalarEvaluator::PrintOrCheck(const Node& node) {
  const NodeValue& given = At(node.inputs[0]);
  const Value value(*given.scalar);
  const Value* const inputs[] = {&value};
  const ValueInfo infos[] = {ValueInfo::OfScalar(given.scalar->type())};
  Result<Value> result = kernels_.Run({node, Phase::kWhole, inputs, infos, 0, 0, 0, context_});
  return result.status().At(node.position);
}

}  // namespace heddle::engine
