// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "compiler/build/body_builder.h"
#include "compiler/build/other_functions.h"

namespace heddle::compiler {

std::string BodyBuilder::NewTemporary() { return fmt::format("%t{}", ++program_.next_temporary); }

// Evaluates the calls of DML functions and the steps on lists in an expression into temporaries, left to
// right, each once.
void BodyBuilder::HoistCalls(const Expression& expression) {
  const bool is_call = expression.kind == Expression::Kind::kCall;
  const Callee* callee = is_call ? program_.FindCallee(file_, expression) : nullptr;
  if (callee == nullptr) {
    HoistInside(expression);
    if (early_reads_.contains(&expression)) {
      hoisted_[&expression] = NewTemporary();
      Define(hoisted_[&expression], BuildRead(expression), expression.range);
    } else {
      HoistListStep(expression);
    }
    return;
  }
  const DmlFunction* function = ChooseFunction(expression, *callee);
  if (function == nullptr) return;
  if (function->definition->results.empty()) {
    Error(expression.range, fmt::format("{}() returns no result", expression.name));
    return;
  }
  std::vector<std::string> results(function->definition->results.size());
  results[0] = NewTemporary();
  if (EmitCall(expression, *function, results)) hoisted_[&expression] = results[0];
}

void BodyBuilder::HoistInside(const Expression& expression) {
  for (const ExpressionPointer& operand : expression.operands) HoistCalls(*operand);
  if (expression.index) HoistIndex(*expression.index);
  for (const Argument& argument : expression.arguments) {
    if (IsPick(expression, *argument.value))
      HoistIndex(*argument.value->index);
    else
      HoistCalls(*argument.value);
  }
}

void BodyBuilder::HoistIndex(const Index& index) {
  if (!calls_in_index_) ForbidCallsInIndex(index);
  for (const IndexRange* range : {&index.rows, &index.columns})
    for (const Expression* bound : {range->from.get(), range->to.get()})
      if (bound != nullptr) HoistCalls(*bound);
}

// Of the statement's expression, left to right: the reads that stand before the call of a DML function, which
// may write what they read. `open`: those that no call has followed so far.
void BodyBuilder::FindEarlyReads(const Expression& expression, std::vector<const Expression*>* open) {
  const size_t before = open->size();
  for (const ExpressionPointer& operand : expression.operands) FindEarlyReads(*operand, open);
  if (expression.index)
    for (const IndexRange* range : {&expression.index->rows, &expression.index->columns})
      for (const Expression* bound : {range->from.get(), range->to.get()})
        if (bound != nullptr) FindEarlyReads(*bound, open);
  if (expression.kind != Expression::Kind::kCall) return;
  for (const Argument& argument : expression.arguments) FindEarlyReads(*argument.value, open);
  if (program_.FindCallee(file_, expression) != nullptr) {
    // Its own arguments are made before it anyway.
    early_reads_.insert(open->begin(), open->begin() + static_cast<std::ptrdiff_t>(before));
    open->clear();
  } else if (const ops::Operator* builtin =
                 expression.name_space.empty() ? ops::FindBuiltin(expression.name) : nullptr;
             builtin != nullptr && builtin->form == ops::CallForm::kRead) {
    open->push_back(&expression);
  }
}

void BodyBuilder::ForbidCalls(const Expression& expression, std::string_view where) {
  for (const ExpressionPointer& operand : expression.operands) ForbidCalls(*operand, where);
  if (expression.index) ForbidCallsInIndex(*expression.index);
  if (expression.kind != Expression::Kind::kCall) return;
  for (const Argument& argument : expression.arguments) ForbidCalls(*argument.value, where);
  if (program_.FindCallee(file_, expression) == nullptr) return;
  Error(expression.name_range,
        fmt::format("a DML function cannot be called in {}: '{}'", where, expression.name))
      .notes.push_back(fmt::format("assign its result to a variable first: x = {}(...)", expression.name));
}

void BodyBuilder::ForbidCallsInIndex(const Index& index) {
  for (const IndexRange* range : {&index.rows, &index.columns})
    for (const Expression* bound : {range->from.get(), range->to.get()})
      if (bound != nullptr) ForbidCalls(*bound, "an index");
}

// bound[i] is the argument of parameter i, nullptr for its default. False after an error.
bool BodyBuilder::BindArguments(const Expression& call, const FunctionDefinition& definition,
                                std::vector<const Argument*>* bound) {
  const std::vector<ParameterDefinition>& parameters = definition.parameters;
  bound->assign(parameters.size(), nullptr);
  const size_t named = static_cast<size_t>(std::count_if(call.arguments.begin(), call.arguments.end(),
                                                         [](const Argument& a) { return !a.name.empty(); }));
  if (named > 0 && named < call.arguments.size()) {
    Error(call.range, fmt::format("the call of {}() mixes positional and named arguments", call.name));
    return false;
  }
  if (call.arguments.size() > parameters.size() && named == 0) {
    Error(call.range, fmt::format("{}() takes {} argument{}, got {}", call.name, parameters.size(),
                                  parameters.size() == 1 ? "" : "s", call.arguments.size()));
    return false;
  }
  bool ok = true;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const Argument& argument = call.arguments[i];
    size_t position = i;
    if (named > 0) {
      position = static_cast<size_t>(std::find_if(parameters.begin(), parameters.end(),
                                                  [&](const auto& p) { return p.name == argument.name; }) -
                                     parameters.begin());
      if (position == parameters.size()) {
        std::vector<std::string> names;
        for (const ParameterDefinition& parameter : parameters) names.push_back(parameter.name);
        Error(argument.name_range, fmt::format("{}() has no parameter '{}'", call.name, argument.name))
            .suggestion = SuggestName(argument.name, names);
        ok = false;
        continue;
      }
      if ((*bound)[position] != nullptr) {
        Error(argument.name_range,
              fmt::format("the argument '{}' of {}() is given twice", argument.name, call.name));
        ok = false;
        continue;
      }
    }
    (*bound)[position] = &argument;
  }
  for (size_t i = 0; ok && i < parameters.size(); ++i) {
    if ((*bound)[i] != nullptr || parameters[i].default_value != nullptr) continue;
    Error(call.range, fmt::format("the argument '{}' of {}() is missing", parameters[i].name, call.name));
    ok = false;
  }
  return ok;
}

// Ends the block, whose last act is to make the arguments, and calls. The calls in the arguments are made
// already. False after an error; results are defined anyway.
bool BodyBuilder::EmitCall(const Expression& call, const DmlFunction& function,
                           const std::vector<std::string>& results) {
  const FunctionDefinition& definition = *function.definition;
  program_.Need(function, At(call.name_range));
  std::vector<const Argument*> bound;
  const bool ok = BindArguments(call, definition, &bound);
  Block block = NewBlock(Block::Kind::kCall, call.range);
  block.function = function.key;
  if (ok) {
    for (size_t i = 0; i < bound.size(); ++i) {
      const ParameterDefinition& parameter = definition.parameters[i];
      block.arguments.emplace_back(parameter.name, bound[i] != nullptr
                                                       ? PassArgument(call, parameter, *bound[i])
                                                       : PassDefault(call, function, parameter));
    }
  } else {
    for (const Argument& argument : call.arguments) BuildExpression(*argument.value);
  }
  Flush();
  built_arguments_.clear();
  block.results = results;
  for (size_t i = 0; i < results.size(); ++i)
    if (!results[i].empty() && definition.results[i].data_type == DataType::kScalar)
      block.results[i] = NewTemporary();
  const std::vector<std::string> given = block.results;
  blocks_.push_back(std::move(block));
  for (size_t i = 0; i < results.size(); ++i)
    if (!results[i].empty()) BindResult(call, function, definition.results[i], given[i], results[i]);
  return ok;
}

// The variable `name` is what the call has left in `given`: a scalar as the declared type.
void BodyBuilder::BindResult(const Expression& call, const DmlFunction& function,
                             const ParameterDefinition& result, const std::string& given,
                             const std::string& name) {
  LiveIn known;
  known.info = ValueInfo::OfDeclared(result.data_type, ValueType::kUnknown);
  if (result.data_type == DataType::kScalar) {
    const NodeId value = block_.Read(given, known, At(call.range));
    const NodeId declared =
        block_.Add("as.declared", {value}, At(call.range),
                   {{"type", Scalar(std::string(Name(result.value_type)))},
                    {"what", Scalar(fmt::format("function '{}': result '{}'", function.name, result.name))}});
    block_.Assign(name, declared, At(call.range));
    known = {block_.InfoOf(declared), block_.ValueOf(declared)};
  }
  scope_[name] = {std::move(known), call.range};
}

std::string BodyBuilder::PassNode(NodeId node, const SourceRange& range) {
  const std::string temporary = NewTemporary();
  block_.Assign(temporary, node, At(range));
  return temporary;
}

std::string BodyBuilder::PassArgument(const Expression& call, const ParameterDefinition& parameter,
                                      const Argument& argument) {
  const Expression& expression = *argument.value;
  if (IsList(expression)) {
    if (parameter.data_type != DataType::kList && parameter.data_type != DataType::kUnknown)
      Error(expression.range, fmt::format("the argument '{}' of {}() must be a {}, not a list",
                                          parameter.name, call.name, Name(parameter.data_type)))
          .notes.push_back(fmt::format("as.{}(l[i]) takes an element of a list", Name(parameter.data_type)));
    return PassOperand(expression);
  }
  const auto built = built_arguments_.find(&expression);
  const NodeId given = built != built_arguments_.end() ? built->second : BuildExpression(expression);
  const NodeId value = ConvertArgument(call, parameter, given, expression.range);
  // A variable that needs no conversion is passed as it is.
  if (value == given && expression.kind == Expression::Kind::kIdentifier &&
      scope_.contains(VariableFor(expression.name)))
    return VariableFor(expression.name);
  if (value == given && hoisted_.contains(&expression)) return hoisted_[&expression];
  return PassNode(value, expression.range);
}

// Defaults are evaluated by the caller, but see no variables.
std::string BodyBuilder::PassDefault(const Expression& call, const DmlFunction& function,
                                     const ParameterDefinition& parameter) {
  const Expression& expression = *parameter.default_value;
  Scope scope = std::exchange(scope_, {});
  auto renamed = std::exchange(renamed_, {});
  const int32_t file = std::exchange(file_, function.file);
  const std::string* path =
      std::exchange(path_, &program_.scripts.files[static_cast<size_t>(function.file)].path);
  ForbidCalls(expression, "the default of a parameter");
  HoistCalls(expression);
  std::string passed;
  if (IsList(expression))
    passed = PassOperand(expression);
  else
    passed = PassNode(ConvertArgument(call, parameter, BuildExpression(expression), expression.range),
                      expression.range);
  scope_ = std::move(scope);
  renamed_ = std::move(renamed);
  file_ = file;
  path_ = path;
  return passed;
}

// Scalars become the value type that the parameter declares.
NodeId BodyBuilder::ConvertArgument(const Expression& call, const ParameterDefinition& parameter,
                                    NodeId value, const SourceRange& range) {
  const ValueInfo info = InfoOf(value);
  if (parameter.data_type == DataType::kList && info.data_type != DataType::kUnknown)
    Error(range, fmt::format("the argument '{}' of {}() must be a list, not a {}", parameter.name, call.name,
                             Name(info.data_type)))
        .notes.push_back("list(x) makes a list of one element");
  if (parameter.data_type != DataType::kScalar) return value;
  if (info.IsTabular()) {
    Error(range, fmt::format("the argument '{}' of {}() must be a scalar, not a {}", parameter.name,
                             call.name, Name(info.data_type)))
        .notes.push_back("as.scalar(X) makes a scalar of a 1x1 matrix");
    return ErrorNode(range);
  }
  if (!info.IsScalar() || info.value_type == parameter.value_type) return value;
  switch (parameter.value_type) {
    case ValueType::kUnknown: return value;
    case ValueType::kDouble: return block_.Add("as.double", {value}, At(range));
    case ValueType::kInteger: return block_.Add("as.integer", {value}, At(range));
    case ValueType::kBoolean: return block_.Add("as.logical", {value}, At(range));
    case ValueType::kString:
      return block_.Add("+", {block_.Literal(Scalar(""), At(range)), value}, At(range));
  }
  return value;
}

void BodyBuilder::ReportUnknownFunction(const Expression& call) {
  if (!call.name_space.empty()) {
    if (!program_.functions.HasNameSpace(file_, call.name_space)) {
      Error(call.name_range, fmt::format("undefined namespace '{}'", call.name_space)).suggestion =
          SuggestName(call.name_space, program_.functions.NameSpacesIn(file_));
    } else if (program_.functions.IsLoaded(file_, call.name_space)) {
      Error(call.name_range, fmt::format("undefined function '{}::{}'", call.name_space, call.name))
          .suggestion = SuggestName(call.name, program_.functions.NamesIn(file_, call.name_space));
    }
    return;
  }
  if (call.name == "remove") {
    Error(call.name_range, "remove() has two results and cannot be part of an expression")
        .notes.push_back("assign them to variables: [rest, removed] = remove(l, i)");
    return;
  }
  if (IsOtherNative(call.name))
    return program_.ReportUnimplemented(*path_, call.name_range, fmt::format("{}() is", call.name));
  if (IsLibraryFunction(call.name)) return program_.ReportMissingLibrary(*path_, call);
  std::vector<std::string> candidates = program_.functions.NamesIn(file_, "");
  for (std::string& name : ops::BuiltinNames()) candidates.push_back(std::move(name));
  for (const std::string_view name : kListBuiltins) candidates.emplace_back(name);
  Diagnostic& diagnostic = Error(call.name_range, fmt::format("undefined function '{}'", call.name));
  diagnostic.suggestion = SuggestName(call.name, candidates);
}

}  // namespace heddle::compiler
