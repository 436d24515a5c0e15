// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/run/body_scalars.h"

#include "ops/base/operator.h"
#include "ops/fused/program/body_view.h"

namespace heddle::ops {
namespace {

double NumberOf(const Scalar& scalar) { return scalar.IsString() ? 0 : scalar.AsDouble(); }

bool IsScalarOf(const TileProgram& program, size_t node) {
  return program.fused.body.nodes[node].info.IsScalar() && program.roles.nodes[node] == BodyRole::kScalar;
}

}  // namespace

BodyScalars::BodyScalars(const TileProgram& program)
    : program_(program), numbers_(program.fused.body.nodes.size(), 0.0) {
  for (size_t i = 0; i < numbers_.size(); ++i) {
    if (!IsScalarOf(program, i)) continue;
    const Node& node = program.fused.body.nodes[i];
    if (node.Is("literal"))
      numbers_[i] = NumberOf(*node.FindAttribute("value"));
    else if (node.Is("variable"))
      inputs_.emplace_back(i, static_cast<size_t>(BodyView::InputPosition(node)));
    else
      has_operators_ = true;
  }
}

Status BodyScalars::Evaluate(const KernelCall& call) {
  for (const auto& [node, input] : inputs_) numbers_[node] = NumberOf(call.inputs[input]->scalar());
  return has_operators_ ? EvaluateOperators(call) : OkStatus();
}

// Operators see booleans, integers and strings as such.
Status BodyScalars::EvaluateOperators(const KernelCall& call) {
  const Graph& body = program_.fused.body;
  std::vector<Scalar> scalars(body.nodes.size());
  for (const auto& [node, input] : inputs_) scalars[node] = call.inputs[input]->scalar();
  std::vector<const Scalar*> operands;
  for (size_t i = 0; i < scalars.size(); ++i) {
    const Node& node = body.nodes[i];
    if (!IsScalarOf(program_, i) || node.Is("variable")) continue;
    if (node.Is("literal")) {
      scalars[i] = *node.FindAttribute("value");
      continue;
    }
    operands.clear();
    for (const NodeId input : node.inputs)
      operands.push_back(input == kNoNode ? nullptr : &scalars[static_cast<size_t>(input)]);
    HEDDLE_ASSIGN_OR_RETURN(scalars[i], EvaluateScalar(node, operands));
    numbers_[i] = NumberOf(scalars[i]);
  }
  return OkStatus();
}

}  // namespace heddle::ops
