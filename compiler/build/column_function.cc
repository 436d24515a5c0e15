// SPDX-License-Identifier: Apache-2.0
// Specs of transforms that name a function for some columns ("udf"): the call of the operator, and behind it
// a call of the function for each of them.
#include "compiler/build/body_builder.h"
#include "ops/transform/spec.h"

namespace heddle::compiler {
namespace {

ExpressionPointer Identifier(const std::string& name, const SourceRange& range) {
  auto identifier = std::make_unique<Expression>();
  identifier->kind = Expression::Kind::kIdentifier;
  identifier->range = identifier->name_range = range;
  identifier->name = name;
  return identifier;
}

// name(variable), where the script calls the transform.
Expression CallOn(const std::string& name, const std::string& variable, const Expression& transform) {
  Expression call;
  call.kind = Expression::Kind::kCall;
  call.range = transform.range;
  call.name_range = transform.name_range;
  const size_t end = name.find("::");
  call.name_space = end == std::string::npos ? "" : name.substr(0, end);
  call.name = end == std::string::npos ? name : name.substr(end + 2);
  Argument argument;
  argument.value = Identifier(variable, transform.range);
  call.arguments.push_back(std::move(argument));
  return call;
}

const Expression* ArgumentNamed(const Expression& call, std::string_view name) {
  const ops::Operator* const builtin = ops::FindBuiltin(call.name);
  const std::vector<ops::OperatorParameter> parameters = ops::ParseParameters(builtin->parameters);
  size_t next = 0;  // By place.
  for (const Argument& argument : call.arguments) {
    if (!argument.name.empty() ? argument.name == name
                               : next < parameters.size() && parameters[next++].name == name)
      return argument.value.get();
  }
  return nullptr;
}

}  // namespace

// A text that straight-line code makes of literals, script arguments and variables.
std::optional<std::string> BodyBuilder::KnownText(const Expression& expression) const {
  const auto text_of = [](const std::optional<Scalar>& value) {
    return value && value->IsString() ? std::optional(value->AsString()) : std::nullopt;
  };
  switch (expression.kind) {
    case Expression::Kind::kLiteral: return text_of(expression.literal);
    case Expression::Kind::kParameter: return text_of(FindScriptArgument(expression.name));
    case Expression::Kind::kIdentifier: {
      const auto found = scope_.find(VariableFor(expression.name));
      return found == scope_.end() ? std::nullopt : text_of(found->second.known.value);
    }
    case Expression::Kind::kBinary: {
      if (expression.name != "+") return std::nullopt;
      const std::optional<std::string> left = KnownText(*expression.operands[0]);
      const std::optional<std::string> right = KnownText(*expression.operands[1]);
      return left && right ? std::optional(*left + *right) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

bool BodyBuilder::HasColumnFunction(const Expression& call) const {
  if (call.kind != Expression::Kind::kCall || !call.name_space.empty()) return false;
  if (call.name != "transformencode" && call.name != "transformapply") return false;
  const Expression* const spec = ArgumentNamed(call, "spec");
  const std::optional<std::string> text = spec == nullptr ? std::nullopt : KnownText(*spec);
  return text && ops::ColumnFunctionOf(*text).has_value();
}

// The node of the transform, which needs no function itself.
NodeId BodyBuilder::BuildTransformAlone(const Expression& call) {
  function_comes_after_ = &call;
  const NodeId node = BuildBuiltinNode(call, *ops::FindBuiltin(call.name));
  function_comes_after_ = nullptr;
  return node;
}

// encoded[, first:last] = f(encoded[, first:last]) for the columns of each column of "udf".
void BodyBuilder::ApplyColumnFunction(const Expression& call, const std::string& encoded,
                                      const std::string& metadata) {
  const SourcePosition position = At(call.name_range);
  const std::string spec = *KnownText(*ArgumentNamed(call, "spec"));
  const ops::ColumnFunction function = *ops::ColumnFunctionOf(spec);
  const auto read = [&](const std::string& name) { return block_.Read(name, scope_[name].known, position); };
  const std::string map = NewTemporary();
  Define(map,
         block_.Add("transformcolmap", {read(metadata), block_.Literal(Scalar(spec), position)}, position,
                    {{"udf", Scalar(true)}}),
         call.range);
  const auto bound = [&](int64_t k, int64_t column) {
    const NodeId row = block_.Literal(Scalar(k), position), cell = block_.Literal(Scalar(column), position);
    return block_.Add("as.scalar", {block_.Add("index", {read(map), row, row, cell, cell}, position)},
                      position);
  };
  for (int64_t k = 1; k <= function.columns; ++k) {
    const std::string columns = NewTemporary();
    Define(columns,
           block_.Add("index", {read(encoded), kNoNode, kNoNode, bound(k, 2), bound(k, 3)}, position),
           call.range);
    const Expression apply = CallOn(function.name, columns, call);
    HoistCalls(apply);
    const NodeId made = BuildExpression(apply);
    hoisted_.erase(&apply);
    Define(encoded,
           block_.Add("indexAssign", {read(encoded), made, kNoNode, kNoNode, bound(k, 2), bound(k, 3)},
                      position),
           call.range);
  }
}

void BodyBuilder::BuildEncodeWithFunction(const Statement& statement) {
  const Expression& call = *statement.value;
  const NodeId tuple = BuildTransformAlone(call);
  if (block_.NodeOf(tuple).Is("variable")) {
    for (const Target& target : statement.targets) AssignTo(target, tuple);
    return;
  }
  std::vector<std::string> results;
  for (int64_t i = 0; i < 2; ++i) {
    results.push_back(NewTemporary());
    Define(results.back(), block_.Add("result", {tuple}, At(call.name_range), {{"index", Scalar(i)}}),
           call.range);
  }
  ApplyColumnFunction(call, results[0], results[1]);
  for (size_t i = 0; i < statement.targets.size(); ++i)
    AssignTo(statement.targets[i],
             block_.Read(results[i], scope_[results[i]].known, At(statement.targets[i].range)));
}

// transformapply(...) inside an expression, which stands for the variable that this leaves.
void BodyBuilder::HoistApplyWithFunction(const Expression& call) {
  const Expression* const meta = ArgumentNamed(call, "meta");
  const NodeId node = BuildTransformAlone(call);
  if (meta == nullptr || block_.NodeOf(node).Is("variable")) return;
  const std::string encoded = NewTemporary(), metadata = NewTemporary();
  Define(encoded, node, call.range);
  Define(metadata, BuildExpression(*meta), call.range);
  ApplyColumnFunction(call, encoded, metadata);
  hoisted_[&call] = encoded;
}

}  // namespace heddle::compiler
