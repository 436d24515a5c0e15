// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "compiler/build/body_builder.h"
#include "compiler/build/script_arguments.h"

namespace heddle::compiler {
namespace {

constexpr const char* kElementsOfLists =
    "as.scalar(l[i]), as.matrix(l[i]) and as.list(l[i]) take an element of a list";

std::optional<double> ConstantNamed(const std::string& name) {
  if (name == "pi") return 3.141592653589793;
  if (name == "Inf") return std::numeric_limits<double>::infinity();
  if (name == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

// The comparison that holds where this one does not, for numbers; empty for all other expressions.
std::string_view Complement(const Expression& expression) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kComplements = {
      {{"<", ">="}, {">=", "<"}, {">", "<="}, {"<=", ">"}, {"==", "!="}, {"!=", "=="}}};
  if (expression.kind != Expression::Kind::kBinary) return "";
  for (const auto& [name, complement] : kComplements)
    if (expression.name == name) return complement;
  return "";
}

bool IsEqualToZero(const Expression& expression) {
  const Expression& right = *expression.operands[1];
  return expression.name == "==" && right.kind == Expression::Kind::kLiteral &&
         (right.literal.type() == ValueType::kInteger || right.literal.type() == ValueType::kDouble) &&
         right.literal.AsDouble() == 0;
}

}  // namespace

NodeId BodyBuilder::BuildExpression(const Expression& expression) {
  if (const auto hoisted = hoisted_.find(&expression); hoisted != hoisted_.end()) {
    const LiveIn& known = scope_[hoisted->second].known;
    if (known.info.data_type == DataType::kList) {
      Error(expression.range, "a list cannot be used here").notes.push_back(kElementsOfLists);
      return ErrorNode(expression.range);
    }
    return block_.Read(hoisted->second, known, At(expression.range));
  }
  if (TakesTensor(expression)) return BuildOfTensor(expression);
  if (IsTensor(expression)) return RefuseTensor(expression.range);
  switch (expression.kind) {
    case Expression::Kind::kLiteral: return block_.Literal(expression.literal, At(expression.range));
    case Expression::Kind::kIdentifier: return ReadVariable(expression.name, expression.range);
    case Expression::Kind::kIndexed:
    case Expression::Kind::kIndexedValue: return BuildIndexed(expression);
    case Expression::Kind::kParameter: return BuildParameter(expression);
    case Expression::Kind::kBinary: return BuildBinary(expression);
    case Expression::Kind::kUnary: return BuildUnary(expression);
    case Expression::Kind::kCall: break;
    case Expression::Kind::kList:
      Error(expression.range, "a list [...] cannot stand here").notes = {
          "it is an argument of some builtins only, for example naStrings of read()",
          "a matrix is written matrix(\"1 2 3\", rows=1, cols=3), a list is written list(1, 2, 3)"};
      return ErrorNode(expression.range);
  }
  if (program_.FindCallee(file_, expression) != nullptr) return ErrorNode(expression.range);  // was reported
  const ops::Operator* builtin = expression.name_space.empty() ? ops::FindBuiltin(expression.name) : nullptr;
  if (builtin != nullptr) return BuildBuiltin(expression, *builtin);
  ReportUnknownFunction(expression);
  for (const Argument& argument : expression.arguments)
    if (!IsList(*argument.value)) BuildExpression(*argument.value);
  return ErrorNode(expression.range);
}

// Stands for a value that could not be made: of unknown type, so that nothing else is said about it.
NodeId BodyBuilder::ErrorNode(const SourceRange& range) { return block_.Read("%error", LiveIn(), At(range)); }

NodeId BodyBuilder::ReadVariable(const std::string& name, const SourceRange& range) {
  if (std::optional<double> constant = ConstantNamed(name))
    return block_.Literal(Scalar(*constant), At(range));
  const std::string& variable = VariableFor(name);
  auto found = scope_.find(variable);
  if (found != scope_.end() && found->second.known.info.data_type == DataType::kList) {
    Error(range, fmt::format("'{}' is a list and cannot be used here", name))
        .notes.push_back(kElementsOfLists);
    return ErrorNode(range);
  }
  if (found != scope_.end()) {
    ReportConflict(found->second);
    if (found->second.is_tensor) return RefuseTensor(range);
    return block_.Read(variable, found->second.known, At(range));
  }
  if (reported_undefined_.insert(name).second) {
    Diagnostic& diagnostic = Error(range, fmt::format("undefined variable '{}'", name));
    std::vector<std::string> candidates = {"TRUE", "FALSE", "pi", "Inf", "NaN"};
    for (const auto& [candidate, known] : scope_)
      if (candidate[0] != '%') candidates.push_back(candidate);
    diagnostic.suggestion = SuggestName(name, candidates);
  }
  return ErrorNode(range);
}

// Says once what is wrong with a variable that is read behind two ways on which it has different types.
void BodyBuilder::ReportConflict(const Variable& variable) {
  if (variable.conflict.empty()) return;
  if (!reported_conflicts_.insert({variable.assigned_at.begin, variable.conflict}).second) return;
  Error(variable.assigned_at, variable.conflict)
      .notes.push_back("a branch or loop must not change whether a variable is a scalar or a matrix");
}

std::optional<Scalar> BodyBuilder::FindScriptArgument(const std::string& name) const {
  auto found = program_.options.arguments.find(name);
  if (found == program_.options.arguments.end()) return std::nullopt;
  return ArgumentValue(found->second);
}

NodeId BodyBuilder::BuildParameter(const Expression& expression) {
  if (std::optional<Scalar> given = FindScriptArgument(expression.name))
    return block_.Literal(*std::move(given), At(expression.range));
  if (IsOpenArgument(expression.name)) return AnyValue(DataType::kScalar, expression.range);
  ReportMissingArgument(expression.name, expression.range);
  return ErrorNode(expression.range);
}

void BodyBuilder::ReportMissingArgument(const std::string& name, const SourceRange& range) {
  const bool is_position = name[0] >= '0' && name[0] <= '9';
  Diagnostic& diagnostic = Error(range, fmt::format("the script's argument ${} is not given", name));
  diagnostic.notes.push_back(program_.options.argument_hint ? program_.options.argument_hint(name)
                             : is_position                  ? "give it after -args, in order"
                                           : fmt::format("give it with -nvargs {}=value", name));
  std::vector<std::string> given;
  for (const auto& [known, value] : program_.options.arguments) given.push_back(known);
  if (!is_position) diagnostic.suggestion = SuggestName(name, given);
}

bool BodyBuilder::IsTransposeCall(const Expression& expression) const {
  return expression.kind == Expression::Kind::kCall && expression.name == "t" &&
         expression.name_space.empty() && expression.arguments.size() == 1 &&
         program_.FindCallee(file_, expression) == nullptr;
}

NodeId BodyBuilder::BuildBinary(const Expression& expression) {
  const Expression& left = *expression.operands[0];
  const Expression& right = *expression.operands[1];
  // t(X) %*% Y as the text says it is one operator (docs/numerics.md, section 3).
  if (expression.name == "%*%" && IsTransposeCall(left)) {
    const NodeId x = BuildExpression(*left.arguments[0].value);
    return block_.Add("t%*%", {x, BuildExpression(right)}, At(expression.name_range));
  }
  // As SystemDS compiles it, and its library relies on it: (x < y) == 0 is x >= y, which NaN tells apart.
  if (const std::string_view complement = Complement(left); !complement.empty() && IsEqualToZero(expression))
    return BuildBinary(*left.operands[0], complement, *left.operands[1], left.name_range);
  return BuildBinary(left, expression.name, right, expression.name_range);
}

NodeId BodyBuilder::BuildBinary(const Expression& left, std::string_view name, const Expression& right,
                                const SourceRange& range) {
  const NodeId a = BuildExpression(left);
  const NodeId b = BuildExpression(right);
  return block_.Add(std::string(name), {a, b}, At(range));
}

NodeId BodyBuilder::BuildUnary(const Expression& expression) {
  const NodeId operand = BuildExpression(*expression.operands[0]);
  const SourcePosition position = At(expression.name_range);
  if (expression.name == "!") return block_.Add("!", {operand}, position);
  return block_.Add("*", {operand, block_.Literal(Scalar(expression.name == "-" ? -1 : 1), position)},
                    position);
}

NodeId BodyBuilder::BuildIndexed(const Expression& expression) {
  const bool is_variable = expression.kind == Expression::Kind::kIndexed;
  const NodeId value = is_variable ? ReadVariable(expression.name, expression.name_range)
                                   : BuildExpression(*expression.operands[0]);
  if (InfoOf(value).IsScalar()) {
    const std::string what = is_variable ? fmt::format("'{}'", expression.name) : "what stands before [...]";
    Error(expression.range, what + " is a scalar and cannot be indexed");
    return ErrorNode(expression.range);
  }
  std::vector<NodeId> inputs = {value};
  BuildIndex(*expression.index, &inputs);
  if (inputs[1] == kNoNode && inputs[3] == kNoNode) return value;  // X[,]
  return block_.Add("index", std::move(inputs), At(expression.range));
}

// Appends rl, ru, cl, cu. A single row or column is the same node twice.
void BodyBuilder::BuildIndex(const Index& index, std::vector<NodeId>* inputs) {
  for (const IndexRange* range : {&index.rows, &index.columns}) {
    NodeId from = kNoNode;
    NodeId to = kNoNode;
    if (range->kind != IndexRange::Kind::kAll) to = from = BuildIndexBound(*range->from);
    if (range->kind == IndexRange::Kind::kRange) to = BuildIndexBound(*range->to);
    inputs->push_back(from);
    inputs->push_back(to);
  }
}

NodeId BodyBuilder::BuildIndexBound(const Expression& expression) {
  const NodeId bound = BuildExpression(expression);
  if (InfoOf(bound).IsTabular()) {
    Error(expression.range, fmt::format("an index must be a scalar, not a {}", Name(InfoOf(bound).data_type)))
        .notes.push_back("as.scalar(X) makes a scalar of a 1x1 matrix");
    return ErrorNode(expression.range);
  }
  return bound;
}

}  // namespace heddle::compiler
