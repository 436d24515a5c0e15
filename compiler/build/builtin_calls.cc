// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "compiler/build/body_builder.h"
#include "compiler/build/other_functions.h"
#include "core/text/double_text.h"
#include "ops/base/broadcast.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

std::string_view Plural(size_t count) { return count == 1 ? "" : "s"; }

// The operator with this name as the third argument of outer(); nullptr when there is none.
const ops::Operator* FindOuterOperator(std::string_view name) {
  for (const ops::Operator* op : ops::AllOperators())
    if (!name.empty() && op->outer == name) return op;
  return nullptr;
}

}  // namespace

std::string AssignmentOf(std::string_view name, int results) {
  if (results == 1) return fmt::format("x = {}(...)", name);
  std::string targets;
  for (int i = 0; i < results; ++i) targets += fmt::format("{}{}", i == 0 ? "" : ", ", char('a' + i));
  return fmt::format("[{}] = {}(...)", targets, name);
}

NodeId BodyBuilder::BuildBuiltin(const Expression& call, const ops::Operator& builtin) {
  // The second result of compress() may be left out.
  if (const int results = builtin.results; results != 1 && builtin.form != ops::CallForm::kSame) {
    Error(call.name_range, fmt::format("{}() returns {} results", call.name, results))
        .notes.push_back("assign them to variables: " + AssignmentOf(call.name, results));
    BuildArguments(call);
    return ErrorNode(call.range);
  }
  return BuildBuiltinNode(call, builtin);
}

NodeId BodyBuilder::BuildBuiltinNode(const Expression& call, const ops::Operator& builtin) {
  switch (builtin.form) {
    case ops::CallForm::kPositional: return BuildPositional(call, builtin);
    case ops::CallForm::kNamed:
    case ops::CallForm::kMatrix:
    case ops::CallForm::kRand: return BuildNamed(call, builtin);
    case ops::CallForm::kVariadic: return BuildVariadic(call, builtin);
    case ops::CallForm::kMinMax: return BuildMinMax(call, builtin);
    case ops::CallForm::kOuter: return BuildOuter(call);
    case ops::CallForm::kSame: return BuildSame(call, builtin);
    case ops::CallForm::kQuantize: return BuildQuantized(call);
    case ops::CallForm::kTable: return BuildTable(call);
    case ops::CallForm::kSample: return BuildSample(call, builtin);
    case ops::CallForm::kRead: return BuildRead(call);
    case ops::CallForm::kNone:
    case ops::CallForm::kPrint:
    case ops::CallForm::kStop:
    case ops::CallForm::kAssert:
    case ops::CallForm::kWrite: break;
  }
  Error(call.range, fmt::format("{}() has no result and cannot be part of an expression", call.name));
  return ErrorNode(call.range);
}

std::vector<NodeId> BodyBuilder::BuildArguments(const Expression& call) {
  std::vector<NodeId> nodes;
  for (const Argument& argument : call.arguments) nodes.push_back(BuildExpression(*argument.value));
  return nodes;
}

bool BodyBuilder::CheckCount(const Expression& call, size_t least, size_t most) {
  const size_t count = call.arguments.size();
  if (count >= least && count <= most) return true;
  const std::string takes = least == most ? fmt::format("{} argument{}", least, Plural(least))
                            : most == std::string::npos
                                ? fmt::format("at least {} argument{}", least, Plural(least))
                                : fmt::format("{} to {} arguments", least, most);
  Error(call.range, fmt::format("{}() takes {}, got {}", call.name, takes, count));
  return false;
}

// bound[i] is the argument of parameter i or nullptr. Positional arguments come first. False after an error.
bool BodyBuilder::BindNamed(const Expression& call, const std::vector<ops::OperatorParameter>& parameters,
                            std::vector<const Argument*>* bound) {
  bound->assign(parameters.size(), nullptr);
  bool ok = true;
  size_t next = 0;
  for (const Argument& argument : call.arguments) {
    size_t position = next;
    if (argument.name.empty()) {
      if (next == parameters.size()) {
        Error(call.range, fmt::format("{}() takes at most {} argument{}, got {}", call.name,
                                      parameters.size(), Plural(parameters.size()), call.arguments.size()));
        return false;
      }
      ++next;
    } else {
      position = 0;
      while (position < parameters.size() && parameters[position].name != argument.name) ++position;
      if (position == parameters.size()) {
        std::vector<std::string> names;
        for (const ops::OperatorParameter& parameter : parameters) names.emplace_back(parameter.name);
        Error(argument.name_range, fmt::format("{}() has no parameter '{}'", call.name, argument.name))
            .suggestion = SuggestName(argument.name, names);
        ok = false;
        continue;
      }
    }
    if ((*bound)[position] != nullptr) {
      Error(argument.value->range,
            fmt::format("the argument '{}' of {}() is given twice", parameters[position].name, call.name));
      ok = false;
      continue;
    }
    (*bound)[position] = &argument;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if ((*bound)[i] != nullptr || parameters[i].optional || !ok) continue;
    Error(call.range, fmt::format("the argument '{}' of {}() is missing", parameters[i].name, call.name));
    ok = false;
  }
  return ok;
}

// The texts of ["NA", "?"] as one, as operators take them.
std::optional<Scalar> BodyBuilder::JoinTexts(const Expression& list) {
  std::string joined;
  for (const ExpressionPointer& operand : list.operands) {
    const NodeId node = BuildExpression(*operand);
    const std::optional<Scalar>& value = block_.ValueOf(node);
    if (!value || !value->IsString()) {
      Error(operand->range,
            "the elements of this list must be strings that are known when the script is compiled");
      return std::nullopt;
    }
    if (operand != list.operands.front()) joined += "\u00b7";
    joined += value->AsString();
  }
  return Scalar(joined);
}

// The texts of [e1, e2], whatever is known of them, as one with `between` between them.
NodeId BodyBuilder::JoinElements(const Expression& list, std::string_view between) {
  const SourcePosition position = At(list.range);
  NodeId joined = block_.Literal(Scalar(""), position);
  for (const ExpressionPointer& operand : list.operands) {
    const NodeId element = BuildExpression(*operand);
    if (InfoOf(element).IsTabular()) {
      Error(operand->range, fmt::format("the elements of [...] are scalars, not {}",
                                        InfoOf(element).IsFrame() ? "frames" : "matrices"));
      return ErrorNode(list.range);
    }
    if (operand != list.operands.front())
      joined = block_.Add("+", {joined, block_.Literal(Scalar(std::string(between)), position)}, position);
    joined = block_.Add("+", {joined, element}, position);
  }
  return joined;
}

// An argument that may be a list [...] where the operator takes one: texts of frame(), cells of matrix().
NodeId BodyBuilder::BuildInput(const ops::Operator& builtin, const ops::OperatorParameter& parameter,
                               const Expression& value) {
  const bool is_list = value.kind == Expression::Kind::kList && parameter.name == "data";
  if (is_list && builtin.name == "frame") return JoinElements(value, "\u00b7");
  if (is_list && builtin.name == "matrix") return JoinElements(value, " ");
  return BuildExpression(value);
}

std::optional<Scalar> BodyBuilder::ConstantOf(const Expression& call, const Argument& argument,
                                              std::string_view name) {
  const bool takes_list = name == "naStrings" || (name == "schema" && call.name == "frame");
  if (argument.value->kind == Expression::Kind::kList && takes_list) return JoinTexts(*argument.value);
  const NodeId node = BuildExpression(*argument.value);
  if (block_.ValueOf(node)) return block_.ValueOf(node);
  if (InfoOf(node).data_type != DataType::kUnknown && !MayBeAnything(node))
    Error(
        argument.value->range,
        fmt::format("the argument '{}' of {}() must be known when the script is compiled", name, call.name));
  return std::nullopt;
}

// stride=[2, 2]: as many expressions as the parameter has inputs.
bool BodyBuilder::BuildElements(const Expression& call, const Argument& argument, std::string_view name,
                                std::vector<NodeId>* nodes) {
  const Expression& list = *argument.value;
  if (list.kind == Expression::Kind::kList && list.operands.size() == nodes->size()) {
    for (size_t i = 0; i < nodes->size(); ++i) (*nodes)[i] = BuildExpression(*list.operands[i]);
    return true;
  }
  const std::string got = list.kind == Expression::Kind::kList
                              ? fmt::format("not of {}", list.operands.size())
                              : "written [a, b, ...]";
  Error(list.range, fmt::format("the argument '{}' of {}() must be a list of {} numbers, {}", name, call.name,
                                nodes->size(), got));
  return false;
}

NodeId BodyBuilder::BuildPositional(const Expression& call, const ops::Operator& builtin) {
  const std::vector<ops::OperatorParameter> parameters = ops::ParseParameters(builtin.parameters);
  const bool all_named =
      !call.arguments.empty() && std::none_of(call.arguments.begin(), call.arguments.end(),
                                              [](const Argument& argument) { return argument.name.empty(); });
  if (all_named) return BuildNamed(call, builtin);
  if (call.arguments.size() > parameters.size() && !builtin.overload.empty())
    return BuildPositional(call, *ops::FindOperator(builtin.overload));
  const size_t least = static_cast<size_t>(std::count_if(
      parameters.begin(), parameters.end(), [](const ops::OperatorParameter& p) { return !p.optional; }));
  std::vector<NodeId> inputs = BuildArguments(call);
  if (!CheckCount(call, least, parameters.size())) return ErrorNode(call.range);
  if (!builtin.drops_last_input) inputs.resize(parameters.size(), kNoNode);
  return block_.Add(std::string(builtin.name), std::move(inputs), At(call.name_range));
}

// replace(X, 0, "Infinity"): texts of numbers are numbers where cells are.
void BodyBuilder::NumbersOfTexts(std::vector<NodeId>* inputs) {
  for (NodeId& input : *inputs) {
    const std::optional<Scalar>& value = block_.ValueOf(input);
    const std::optional<double> number =
        value && value->IsString() ? ParseDouble(value->AsString()) : std::nullopt;
    if (number) input = block_.Literal(Scalar(*number), block_.NodeOf(input).position);
  }
}

NodeId BodyBuilder::BuildNamed(const Expression& call, const ops::Operator& builtin) {
  std::vector<const Argument*> bound;
  const std::vector<ops::OperatorParameter> parameters = ops::ParseParameters(builtin.parameters);
  if (builtin.form == ops::CallForm::kRand) {
    for (const Argument& argument : call.arguments) {
      if (argument.name == "dims")
        program_.ReportUnimplemented(*path_, argument.name_range, "rand() of a tensor is",
                                     kTensorsOfOneValue);
      else if (argument.name.empty())
        Error(argument.value->range, fmt::format("{}() takes named arguments only", call.name))
            .notes.push_back(fmt::format("for example {}(rows=3, cols=2)", call.name));
      else
        continue;
      return ErrorNode(call.range);
    }
  }
  if (!BindNamed(call, parameters, &bound)) {
    // What is wrong inside the arguments is said, too.
    for (const Argument& argument : call.arguments) {
      if (argument.value->kind != Expression::Kind::kList) BuildExpression(*argument.value);
      for (const ExpressionPointer& element : argument.value->operands)
        if (argument.value->kind == Expression::Kind::kList) BuildExpression(*element);
    }
    return ErrorNode(call.range);
  }
  // Arguments are evaluated in the order of the text.
  std::vector<NodeId> inputs;
  std::vector<std::pair<std::string, Scalar>> attributes;
  std::vector<std::vector<NodeId>> nodes(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i)
    nodes[i].assign(static_cast<size_t>(parameters[i].inputs()), kNoNode);
  for (const Argument& argument : call.arguments) {
    const auto i = static_cast<size_t>(std::find(bound.begin(), bound.end(), &argument) - bound.begin());
    if (parameters[i].length > 0) {
      if (!BuildElements(call, argument, parameters[i].name, &nodes[i])) return ErrorNode(call.range);
    } else if (!parameters[i].attribute) {
      nodes[i][0] = BuildInput(builtin, parameters[i], *argument.value);
    } else if (std::optional<Scalar> value = ConstantOf(call, argument, parameters[i].name)) {
      attributes.emplace_back(parameters[i].name, *std::move(value));
    } else if (program_.options.any_arguments) {
      return AnyValue(DataType::kUnknown, call.range);
    }
  }
  for (const std::vector<NodeId>& of_parameter : nodes)
    inputs.insert(inputs.end(), of_parameter.begin(), of_parameter.end());
  if (builtin.name == "replace" && InfoOf(inputs[0]).IsMatrix()) NumbersOfTexts(&inputs);
  if (function_comes_after_ == &call) attributes.emplace_back("udf", Scalar(true));
  if (builtin.seed_input >= 0) attributes.emplace_back("stream", Scalar(program_.next_stream++));
  if (builtin.drops_last_input && inputs.back() == kNoNode) inputs.pop_back();
  return block_.Add(std::string(builtin.name), std::move(inputs), At(call.name_range), std::move(attributes));
}

NodeId BodyBuilder::BuildVariadic(const Expression& call, const ops::Operator& builtin) {
  std::vector<NodeId> inputs;
  std::vector<std::pair<std::string, Scalar>> attributes;
  const std::vector<ops::OperatorParameter> parameters = ops::ParseParameters(builtin.parameters);
  size_t next = 0;
  for (const Argument& argument : call.arguments) {
    const ops::OperatorParameter& parameter = parameters[std::min(next++, parameters.size() - 1)];
    if (!parameter.attribute) {
      inputs.push_back(BuildExpression(*argument.value));
    } else if (std::optional<Scalar> value = ConstantOf(call, argument, parameter.name)) {
      attributes.emplace_back(parameter.name, *std::move(value));
    }
  }
  if (!CheckCount(call, parameters.size(), std::string::npos)) return ErrorNode(call.range);
  const auto is_text = [&](NodeId input) {
    const ValueInfo& info = InfoOf(input);
    return info.IsScalar() &&
           (info.value_type == ValueType::kString || info.value_type == ValueType::kUnknown);
  };
  // append("a", "b") writes texts below each other.
  const bool binds = builtin.name == "cbind" || builtin.name == "rbind";
  if (binds && inputs.size() == 2 && is_text(inputs[0]) && InfoOf(inputs[1]).IsScalar()) {
    const NodeId line_end = block_.Literal(Scalar("\n"), At(call.name_range));
    const NodeId line = block_.Add("+", {inputs[0], line_end}, At(call.name_range));
    return block_.Add("+", {line, inputs[1]}, At(call.name_range));
  }
  return block_.Add(std::string(builtin.name), std::move(inputs), At(call.name_range), std::move(attributes));
}

// One argument: the smallest cell; more: cell by cell.
NodeId BodyBuilder::BuildMinMax(const Expression& call, const ops::Operator& builtin) {
  const std::vector<NodeId> inputs = BuildArguments(call);
  if (!CheckCount(call, 1, std::string::npos)) return ErrorNode(call.range);
  if (inputs.size() == 1) return block_.Add(std::string(builtin.name), inputs, At(call.name_range));
  NodeId result = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i)
    result = block_.Add(std::string(builtin.overload), {result, inputs[i]}, At(call.name_range));
  return result;
}

NodeId BodyBuilder::BuildOuter(const Expression& call) {
  const std::vector<NodeId> inputs = BuildArguments(call);
  if (!CheckCount(call, 3, 3)) return ErrorNode(call.range);
  const std::optional<Scalar>& name = block_.ValueOf(inputs[2]);
  const ops::Operator* op = name && name->IsString() ? FindOuterOperator(name->AsString()) : nullptr;
  if (op == nullptr && !name && MayBeAnything(inputs[2])) return AnyValue(DataType::kMatrix, call.range);
  if (op == nullptr) {
    Error(call.arguments[2].value->range,
          fmt::format("the third argument of {}() must be an operator in quotes, for example \"*\"",
                      call.name));
    return ErrorNode(call.range);
  }
  // Where sizes are known, the vectors stand as cell-wise operators take them, or not.
  std::vector<std::pair<std::string, Scalar>> attributes;
  const ValueInfo &u = InfoOf(inputs[0]), &v = InfoOf(inputs[1]);
  if (!u.IsScalar() && !v.IsScalar() && !(u.shape.columns == 1 && v.shape.rows == 1) &&
      !(u.shape.IsKnown() && v.shape.IsKnown()))
    attributes.emplace_back(ops::kOuter, Scalar(true));
  return block_.Add(std::string(op->name), {inputs[0], inputs[1]}, At(call.name_range),
                    std::move(attributes));
}

// sample(range, size, replace, seed), or sample(range, size, seed): a boolean says how to draw.
NodeId BodyBuilder::BuildSample(const Expression& call, const ops::Operator& builtin) {
  const bool all_named =
      !call.arguments.empty() && std::none_of(call.arguments.begin(), call.arguments.end(),
                                              [](const Argument& argument) { return argument.name.empty(); });
  if (all_named) return BuildNamed(call, builtin);
  std::vector<NodeId> inputs = BuildArguments(call);
  if (!CheckCount(call, 2, 4)) return ErrorNode(call.range);
  inputs.resize(4, kNoNode);
  const ValueType third = inputs[2] == kNoNode ? ValueType::kBoolean : InfoOf(inputs[2]).value_type;
  if (third != ValueType::kBoolean && !(third == ValueType::kUnknown && MayBeAnything(inputs[2]))) {
    if (inputs[3] != kNoNode) {
      Error(call.arguments[2].value->range,
            "the third argument of sample() must be TRUE or FALSE where a seed follows");
      return ErrorNode(call.range);
    }
    std::swap(inputs[2], inputs[3]);
  }
  return block_.Add(std::string(builtin.name), std::move(inputs), At(call.name_range),
                    {{"stream", Scalar(program_.next_stream++)}});
}

// compress(X), compress(X, M) and the like: how the reference engine stores a value.
// compress(X, M), decompress(X), local(X). How a frame or a list is stored nobody chooses.
NodeId BodyBuilder::BuildSame(const Expression& call, const ops::Operator& builtin) {
  const std::vector<NodeId> inputs = BuildArguments(call);
  const size_t most = ops::ParseParameters(builtin.parameters).size();
  if (!CheckCount(call, 1, most)) return ErrorNode(call.range);
  const ValueInfo& info = InfoOf(inputs[0]);
  if (info.IsScalar()) {
    Error(call.arguments[0].value->range,
          fmt::format("the argument of {}() must be a matrix, not a scalar", call.name));
    return ErrorNode(call.range);
  }
  if (builtin.infer == nullptr || info.IsFrame() || info.data_type == DataType::kList) return inputs[0];
  return block_.Add(std::string(builtin.name), {inputs[0]}, At(call.name_range));
}

// quantize_compress(X, s): how many whole steps of 1 / s the cells are; s is a number, or has one for each
// row.
NodeId BodyBuilder::BuildQuantized(const Expression& call) {
  const std::vector<NodeId> inputs = BuildArguments(call);
  if (!CheckCount(call, 2, 2)) return ErrorNode(call.range);
  const NodeId scaled = block_.Add("*", {inputs[0], inputs[1]}, At(call.name_range));
  return block_.Add("floor", {scaled}, At(call.name_range));
}

// True for seq(1, n) and seq(1, n, 1), also through variables.
bool BodyBuilder::NumbersRows(NodeId id) {
  const Node& node = block_.NodeOf(id);
  if (node.Is("variable")) {
    const auto found = scope_.find(node.Text("name"));
    return found != scope_.end() && found->second.numbers_rows;
  }
  const auto is_one = [&](NodeId input) {
    const std::optional<Scalar>& value = block_.ValueOf(input);
    return value && !value->IsString() && value->AsDouble() == 1;
  };
  return ops::HasRole(node, ops::Role::kSequence) && is_one(node.inputs[0]) &&
         (node.inputs[2] == kNoNode || is_one(node.inputs[2]));
}

// table(A, B [, W] [, d1, d2] [, outputEmptyBlocks]) as inputs A, B, W, d1, d2. A table of rows that are
// numbered has a row for each, also where B is NaN: that is how scripts make one-hot rows.
NodeId BodyBuilder::BuildTable(const Expression& call) {
  std::vector<NodeId> given;
  for (const Argument& argument : call.arguments) {
    const NodeId node = BuildExpression(*argument.value);
    if (argument.name != "outputEmptyBlocks") given.push_back(node);
  }
  if (!CheckCount(call, 2, 6)) return ErrorNode(call.range);
  if (given.size() < 2) {
    Error(call.range, fmt::format("{}() takes two matrices at least", call.name));
    return ErrorNode(call.range);
  }
  if (given.size() == 6) given.pop_back();  // how the reference engine stores it
  if (given.size() == 4) given.insert(given.begin() + 2, kNoNode);
  given.resize(5, kNoNode);
  std::vector<std::pair<std::string, Scalar>> attributes;
  if (NumbersRows(given[0])) attributes.emplace_back("keep.rows", Scalar(true));
  return block_.Add("table", std::move(given), At(call.name_range), std::move(attributes));
}

}  // namespace heddle::compiler
