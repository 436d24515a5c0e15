// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "compiler/build/body_builder.h"

// Tensors (language reference 2.1). SystemDS makes them of one value and knows little that can be done with
// them: tensor(value, dims), + - * / ^ %% %/% of two, sum() and toString(). So a tensor is two variables of
// the program: the value of its cells, under its name, and its dimensions, a text. Only the front end knows
// that they belong together.
namespace heddle::compiler {
namespace {

constexpr std::array<std::string_view, 7> kArithmetic = {"+", "-", "*", "/", "^", "%%", "%/%"};

}  // namespace

std::string TensorDims(const std::string& variable) { return "%dims." + variable; }

std::string_view TypeName(const Variable& variable) {
  return variable.is_tensor ? "tensor" : Name(variable.known.info.data_type);
}

bool BodyBuilder::IsTensor(const Expression& expression) const {
  switch (expression.kind) {
    case Expression::Kind::kIdentifier: {
      const auto found = scope_.find(VariableFor(expression.name));
      return found != scope_.end() && found->second.is_tensor;
    }
    case Expression::Kind::kBinary:
      return std::find(kArithmetic.begin(), kArithmetic.end(), expression.name) != kArithmetic.end() &&
             (IsTensor(*expression.operands[0]) || IsTensor(*expression.operands[1]));
    case Expression::Kind::kCall:
      return expression.name == "tensor" && expression.name_space.empty() &&
             program_.FindCallee(file_, expression) == nullptr;
    default: return false;
  }
}

// sum(A) and toString(A), which give a scalar.
bool BodyBuilder::TakesTensor(const Expression& call) const {
  return call.kind == Expression::Kind::kCall && (call.name == "sum" || call.name == "toString") &&
         call.name_space.empty() && !call.arguments.empty() && IsTensor(*call.arguments[0].value) &&
         program_.FindCallee(file_, call) == nullptr;
}

NodeId BodyBuilder::RefuseTensor(const SourceRange& range) {
  Error(range, "a tensor cannot be used here").notes.emplace_back(kTensorsOfOneValue);
  return ErrorNode(range);
}

// nullopt after an error.
std::optional<BodyBuilder::TensorNodes> BodyBuilder::BuildTensor(const Expression& expression) {
  if (expression.kind == Expression::Kind::kIdentifier) {
    const std::string& variable = VariableFor(expression.name);
    const std::string dims = TensorDims(variable);
    return TensorNodes{block_.Read(variable, scope_[variable].known, At(expression.range)),
                       block_.Read(dims, scope_[dims].known, At(expression.range))};
  }
  if (expression.kind == Expression::Kind::kBinary) {
    std::array<TensorNodes, 2> sides;
    for (size_t i = 0; i < 2; ++i) {
      const Expression& side = *expression.operands[i];
      if (!IsTensor(side)) {
        Error(side.range, "a tensor can be combined with a tensor only")
            .notes.emplace_back(kTensorsOfOneValue);
        return std::nullopt;
      }
      const std::optional<TensorNodes> built = BuildTensor(side);
      if (!built) return std::nullopt;
      sides[i] = *built;
    }
    const SourcePosition position = At(expression.name_range);
    return TensorNodes{block_.Add(expression.name, {sides[0].value, sides[1].value}, position),
                       block_.Add("tensorDims", {sides[0].dims, sides[1].dims}, position)};
  }
  std::vector<const Argument*> bound;
  if (!BindNamed(expression, ops::ParseParameters("data dims"), &bound)) return std::nullopt;
  const NodeId value = BuildExpression(*bound[0]->value), dims = BuildExpression(*bound[1]->value);
  if (InfoOf(value).IsTabular()) {
    Error(bound[0]->value->range, "the value of a tensor must be a scalar")
        .notes.emplace_back(kTensorsOfOneValue);
    return std::nullopt;
  }
  return TensorNodes{value, block_.Add("tensorDims", {dims}, At(bound[1]->value->range))};
}

void BodyBuilder::AssignTensor(const Target& target, const Expression& value) {
  const std::optional<TensorNodes> tensor = BuildTensor(value);
  if (tensor && target.index != nullptr) {
    RefuseTensor(value.range);
    return;
  }
  if (!tensor) return AssignTo(target, ErrorNode(value.range));
  Define(target.name, tensor->value, target.range);
  const std::string variable = VariableFor(target.name);
  scope_[variable].is_tensor = true;
  const std::string dims = TensorDims(variable);
  Define(dims, tensor->dims, target.range);
}

NodeId BodyBuilder::BuildOfTensor(const Expression& call) {
  const std::optional<TensorNodes> tensor = BuildTensor(*call.arguments[0].value);
  if (!tensor) return ErrorNode(call.range);
  const SourcePosition position = At(call.name_range);
  if (call.name == "sum") {
    if (!CheckCount(call, 1, 1)) return ErrorNode(call.range);
    return block_.Add("*", {tensor->value, block_.Add("tensorCells", {tensor->dims}, position)}, position);
  }
  std::vector<const Argument*> bound;
  if (!BindNamed(call, ops::ParseParameters("target decimal?"), &bound)) return ErrorNode(call.range);
  const NodeId decimal =
      bound[1] == nullptr ? block_.Literal(Scalar(3), position) : BuildExpression(*bound[1]->value);
  return block_.Add("tensorText", {tensor->value, tensor->dims, decimal}, position);
}

}  // namespace heddle::compiler
