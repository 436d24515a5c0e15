// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/runner.h"

#include <algorithm>
#include <optional>

#include "compiler/optimize/pass.h"
#include "engine/recursion/graph_runner.h"
#include "engine/recursion/structure_inputs.h"

namespace heddle::engine {

RecursionRunner::RecursionRunner(const Program& program, const SessionOptions& options, GraphRunner& runner)
    : runner_(runner),
      is_on_(std::find(options.disabled_passes.begin(), options.disabled_passes.end(),
                       compiler::kBatchedRecursion) == options.disabled_passes.end()),
      plans_(program, options, runner),
      forests_(options, runner, [this, &program](const std::string& name) -> std::string {
        const auto function = program.functions.find(name);
        if (function == program.functions.end() || !Knows(function->second)) return "";
        return NodeOf(function->second);
      }) {}

RecursionRunner::~RecursionRunner() = default;

const compiler::Recognition& RecursionRunner::RecognitionOf(const Function& function) const {
  return runner_.recursions().bodies().RecognitionOf(function);
}

const std::string& RecursionRunner::NodeOf(const Function& function) const {
  return function.parameters[RecognitionOf(function).recursion.node_parameter].name;
}

bool RecursionRunner::Knows(const Function& function) {
  if (!is_on_) return false;
  const compiler::Recognition& found = RecognitionOf(function);
  return found.is_recognised && !found.recursion.is_forward;
}

Result<bool> RecursionRunner::Run(const Block& call, const Function& function, VariableTable* callee) {
  const std::optional<int64_t> node = NodeIn(NodeOf(function), *callee);
  if (!node) return false;
  const auto evaluate_all = [&](const Block& loop, const std::vector<int64_t>& roots) {
    return plans_.Evaluate(loop, function, roots, /*may_fail=*/true, callee);
  };
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<RecursionForests::Root> root,
                          forests_.Find(call, *node, evaluate_all));
  if (root) {
    HEDDLE_RETURN_IF_ERROR(plans_.TakeResults(function, *root->evaluation, root->number, callee));
    return true;
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<RecursionEvaluation> alone,
                          plans_.Evaluate(call, function, {*node}, /*may_fail=*/false, callee));
  if (!alone) return false;
  HEDDLE_RETURN_IF_ERROR(plans_.TakeResults(function, *alone, 0, callee));
  return true;
}

Result<bool> RecursionRunner::EnterLoop(const Block& loop,
                                        const std::function<int64_t(uint64_t round)>& value_of,
                                        uint64_t rounds, VariableTable* frame) {
  if (!is_on_) return false;
  return forests_.EnterLoop(loop, value_of, rounds, frame);
}

void RecursionRunner::LeaveLoop(const Block& loop) { forests_.LeaveLoop(loop); }

Result<RecursionForests::Evaluated> RecursionRunner::EvaluateLoop(const Function& function,
                                                                  VariableTable* callee) {
  return forests_.EvaluateLoop([&](const Block& loop, const std::vector<int64_t>& roots) {
    return plans_.Evaluate(loop, function, roots, /*may_fail=*/true, callee);
  });
}

}  // namespace heddle::engine
