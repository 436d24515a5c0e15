// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <utility>

#include "compiler/build/body_builder.h"
#include "compiler/optimize/list_steps.h"

// SystemDS's experimental pair: l = lineage(x) is how x was made, and autoDiff(output=x, lineage=list(l)) the
// derivatives by what made it, the output being the adjoint of x as well. Heddle knows how x was made where x
// is the result of a DML function that the same straight-line code has called; its lineage as a text is that
// call. What is differentiated, and how, is that of gradient() (docs/gradient.md).
namespace heddle::compiler {
namespace {

bool IsCallOf(const Expression& expression, std::string_view name) {
  return expression.kind == Expression::Kind::kCall && expression.name_space.empty() &&
         expression.name == name;
}

const Expression* ArgumentOf(const Expression& call, size_t place, std::string_view name) {
  for (size_t i = 0; i < call.arguments.size(); ++i)
    if (call.arguments[i].name == name || (call.arguments[i].name.empty() && i == place))
      return call.arguments[i].value.get();
  return nullptr;
}

// The derivative by W is dW, that by b dB.
std::string NameOfDerivative(const std::string& parameter) {
  std::string name = "d" + parameter;
  name[1] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[1])));
  return name;
}

}  // namespace

void BodyBuilder::RememberCall(const std::string& variable, const CallChoice& choice) {
  const bool is_plain = !choice.is_eval && choice.functions.size() == 1 && choice.by.empty() &&
                        blocks_.back().kind == Block::Kind::kCall && blocks_.back().candidates.empty();
  if (!is_plain) return;
  MadeBy made{choice.functions[0].second, blocks_.back().arguments, {}};
  for (const auto& [parameter, argument] : made.arguments) made.assigned_at.push_back(AssignedAt(argument));
  scope_[variable].made_by = std::make_shared<const MadeBy>(std::move(made));
}

// Temporaries are assigned once and have no place.
SourceRange BodyBuilder::AssignedAt(const std::string& variable) const {
  const auto found = scope_.find(variable);
  return found == scope_.end() ? SourceRange() : found->second.assigned_at;
}

// l = lineage(x), l = l + "...", d = autoDiff(...). True if the statement is one of them, which is then
// built.
bool BodyBuilder::BuildLineage(const Statement& statement) {
  const Expression& value = *statement.value;
  const Target& target = statement.targets[0];
  if (target.index != nullptr || (value.kind == Expression::Kind::kCall && program_.FindCallee(file_, value)))
    return false;
  if (IsCallOf(value, "autoDiff")) {
    BuildAutoDiff(statement);
    return true;
  }
  std::string of;
  if (IsCallOf(value, "lineage") && value.arguments.size() == 1 &&
      value.arguments[0].value->kind == Expression::Kind::kIdentifier) {
    of = VariableFor(value.arguments[0].value->name);
    const auto found = scope_.find(of);
    if (found == scope_.end() || found->second.made_by == nullptr) return false;
    std::string call = found->second.made_by->function->name + "(";
    for (const auto& [parameter, argument] : found->second.made_by->arguments)
      call += (call.back() == '(' ? "" : ", ") + argument;
    AssignTo(target, block_.Literal(Scalar(call + ")"), At(value.range)));
  } else if (value.kind == Expression::Kind::kBinary && value.name == "+" &&
             value.operands[0]->kind == Expression::Kind::kIdentifier &&
             value.operands[1]->kind == Expression::Kind::kLiteral) {
    const auto found = scope_.find(VariableFor(value.operands[0]->name));
    if (found == scope_.end() || found->second.lineage_of.empty()) return false;
    of = found->second.lineage_of;
    AssignTo(target, BuildExpression(value));
  } else {
    return false;
  }
  scope_[VariableFor(target.name)].lineage_of = of;
  return true;
}

// The call that a lineage tells of; nullptr where that is not known, or its arguments have changed.
const MadeBy* BodyBuilder::CallOfLineage(const Expression& lineage) const {
  const Expression* text = &lineage;
  if (IsCallOf(lineage, "list") && lineage.arguments.size() == 1) text = lineage.arguments[0].value.get();
  if (text->kind != Expression::Kind::kIdentifier) return nullptr;
  const auto of_text = scope_.find(VariableFor(text->name));
  if (of_text == scope_.end()) return nullptr;
  const auto made = scope_.find(of_text->second.lineage_of);
  if (made == scope_.end() || made->second.made_by == nullptr) return nullptr;
  const MadeBy& call = *made->second.made_by;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (AssignedAt(call.arguments[i].second).begin != call.assigned_at[i].begin) return nullptr;
  }
  return &call;
}

void BodyBuilder::BuildAutoDiff(const Statement& statement) {
  const Expression& call = *statement.value;
  const std::string& result = VariableFor(statement.targets[0].name);
  scope_[result] = {UnknownList(), statement.targets[0].range};
  const Expression* const output = ArgumentOf(call, 0, "output");
  const Expression* const lineage = ArgumentOf(call, 1, "lineage");
  if (call.arguments.size() != 2 || output == nullptr || lineage == nullptr) {
    Error(call.range, "autoDiff() takes two arguments, output and lineage");
    return;
  }
  const MadeBy* const made = CallOfLineage(*lineage);
  if (made == nullptr) {
    Error(lineage->range, "autoDiff() needs the lineage of a value that a call of a function has made")
        .notes = {
        "the call, lineage(x) and autoDiff() stand in one body, and the call's arguments do not change",
        "gradient() gives the derivatives of any function"};
    return;
  }
  GradientRequest request{"", made->function->key, {}, At(call.name_range), /*takes_adjoint=*/true};
  Block elements = NewBlock(Block::Kind::kList, call.range);
  elements.operation = ListOperation::kMake;
  for (const ParameterDefinition& parameter : made->function->definition->parameters) {
    if (parameter.data_type != DataType::kMatrix) continue;
    request.parameters.push_back(parameter.name);
    elements.arguments.emplace_back(NameOfDerivative(parameter.name), NewTemporary());
  }
  request.name = GradientName(request.function, request.parameters, /*takes_adjoint=*/true);
  const std::string adjoint = PassOperand(*output);
  Block block = NewBlock(Block::Kind::kCall, call.range);
  block.function = request.name;
  block.arguments = made->arguments;
  block.arguments.emplace_back(kGivenAdjoint, adjoint);
  for (const auto& [name, variable] : elements.arguments) block.results.push_back(variable);
  program_.NeedGradient(std::move(request));
  Flush();
  blocks_.push_back(std::move(block));
  elements.results = {result};
  blocks_.push_back(std::move(elements));
}

}  // namespace heddle::compiler
