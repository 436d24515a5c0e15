// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "compiler/build/body_builder.h"
#include "compiler/build/other_functions.h"
#include "compiler/library/library_files.h"
#include "compiler/optimize/rewrite.h"

namespace heddle::compiler {
namespace {

// Whether eval gives the function the elements of a list, if its argument is one. A function that takes one
// list gets it as it is.
bool Expands(const CallChoice& choice, const DmlFunction& function) {
  const std::vector<ParameterDefinition>& parameters = function.definition->parameters;
  return choice.MayExpand() && !(parameters.size() == 1 && parameters[0].data_type == DataType::kList);
}

// -1 is a unary minus or a literal, as the text has it.
bool IsIntegerLiteral(const Expression& expression) {
  if (expression.kind == Expression::Kind::kUnary && expression.name != "!")
    return IsIntegerLiteral(*expression.operands[0]);
  return expression.kind == Expression::Kind::kLiteral && expression.literal.type() == ValueType::kInteger;
}

// The last value in the text that the variable gets, in nested statements too; null if there is none.
const Expression* LastValueOf(const std::string& name, const std::vector<Statement>& statements) {
  for (auto statement = statements.rbegin(); statement != statements.rend(); ++statement) {
    if (const Expression* inner = LastValueOf(name, statement->otherwise)) return inner;
    if (const Expression* inner = LastValueOf(name, statement->body)) return inner;
    for (const Target& target : statement->targets)
      if (target.name == name) return statement->value.get();
  }
  return nullptr;
}

// SystemDS checks a scalar result by the last value that the text gives it, and leaves other values as they
// are. Its library relies on that: kthSmallest of knnGraph.dml returns fractions as an integer.
bool KeepsFractions(const FunctionDefinition& function, const ParameterDefinition& result) {
  const Expression* last = LastValueOf(result.name, function.body);
  return result.value_type == ValueType::kInteger && last != nullptr && IsIntegerLiteral(*last);
}

}  // namespace

std::string BodyBuilder::NewTemporary() { return fmt::format("%t{}", ++program_.next_temporary); }

// Evaluates the calls of DML functions, the steps on lists and what tells the time in an expression into
// temporaries, left to right, each once.
void BodyBuilder::HoistCalls(const Expression& expression) {
  const bool is_call = expression.kind == Expression::Kind::kCall;
  const Callee* callee = is_call ? program_.FindCallee(file_, expression) : nullptr;
  if (callee == nullptr && is_call && expression.name_space.empty() && TellsTime(expression.name)) {
    Flush();
    hoisted_[&expression] = NewTemporary();
    Define(hoisted_[&expression], BuildBuiltin(expression, *ops::FindBuiltin(expression.name)),
           expression.range);
    Flush();
    return;
  }
  if (callee == nullptr) {
    HoistInside(expression);
    if (early_reads_.contains(&expression) && !ListOperationOf(expression)) {
      hoisted_[&expression] = NewTemporary();
      Define(hoisted_[&expression], BuildRead(expression), expression.range);
    } else if (is_call && expression.name == "transformapply" && HasColumnFunction(expression)) {
      HoistApplyWithFunction(expression);
    } else {
      HoistListStep(expression);
    }
    return;
  }
  const std::optional<CallChoice> choice = ChooseFunctions(expression, *callee);
  if (!choice) return;
  if (ResultsOf(*choice) == 0) {
    Error(expression.range, fmt::format("{}() returns no result", expression.name));
    return;
  }
  const std::string result = NewTemporary();
  if (EmitCall(expression, *choice, {result})) hoisted_[&expression] = result;
}

void BodyBuilder::HoistInside(const Expression& expression) {
  for (const ExpressionPointer& operand : expression.operands) HoistCalls(*operand);
  if (expression.index) HoistIndex(*expression.index);
  for (const Argument& argument : expression.arguments) {
    if (IsPick(expression, *argument.value))
      HoistInside(*argument.value);
    else
      HoistCalls(*argument.value);
  }
}

void BodyBuilder::HoistIndex(const Index& index) {
  for (const IndexRange* range : {&index.rows, &index.columns})
    for (const Expression* bound : {range->from.get(), range->to.get()})
      if (bound != nullptr) HoistCalls(*bound);
}

// Of the statement's expressions, in the order in which they are evaluated: the reads that stand before the
// call of a DML function, which may write what they read.
void BodyBuilder::FindEarlyReads(const Statement& statement) {
  early_reads_.clear();
  std::vector<const Expression*> open;
  for (const ExpressionPointer* part :
       {&statement.value, &statement.from, &statement.to, &statement.increment})
    if (*part != nullptr) FindEarlyReads(**part, &open);
  for (const Target& target : statement.targets)
    if (target.index) FindEarlyReads(*target.index, &open);
}

void BodyBuilder::FindEarlyReads(const Index& index, std::vector<const Expression*>* open) {
  for (const IndexRange* range : {&index.rows, &index.columns})
    for (const Expression* bound : {range->from.get(), range->to.get()})
      if (bound != nullptr) FindEarlyReads(*bound, open);
}

// `open`: the reads that no call has followed so far.
void BodyBuilder::FindEarlyReads(const Expression& expression, std::vector<const Expression*>* open) {
  const size_t before = open->size();
  for (const ExpressionPointer& operand : expression.operands) FindEarlyReads(*operand, open);
  if (expression.index) FindEarlyReads(*expression.index, open);
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
  if (expression.index)
    for (const IndexRange* range : {&expression.index->rows, &expression.index->columns})
      for (const Expression* bound : {range->from.get(), range->to.get()})
        if (bound != nullptr) ForbidCalls(*bound, where);
  if (expression.kind != Expression::Kind::kCall) return;
  for (const Argument& argument : expression.arguments) ForbidCalls(*argument.value, where);
  if (program_.FindCallee(file_, expression) == nullptr) return;
  Error(expression.name_range,
        fmt::format("a DML function cannot be called in {}: '{}'", where, expression.name))
      .notes.push_back(fmt::format("assign its result to a variable first: x = {}(...)", expression.name));
}

// bound[i] is the argument of parameter i, nullptr for its default. False after an error.
bool BodyBuilder::BindArguments(const Expression& call, const CallChoice& choice, const DmlFunction& function,
                                std::vector<const Argument*>* bound) {
  const std::vector<ParameterDefinition>& parameters = function.definition->parameters;
  const std::string& name = choice.is_eval || !choice.by.empty() ? function.name : call.name;
  bound->assign(parameters.size(), nullptr);
  const auto is_positional = [&](const Argument& argument) {
    return choice.is_eval || argument.name.empty();
  };
  for (size_t i = parameters.size(); i < choice.arguments.size(); ++i) {
    if (!is_positional(*choice.arguments[i])) continue;
    Error(call.range, fmt::format("{}() takes {} argument{}, got {}", name, parameters.size(),
                                  parameters.size() == 1 ? "" : "s", choice.arguments.size()));
    return false;
  }
  bool ok = true;
  std::set<size_t> by_position;
  for (size_t i = 0; i < choice.arguments.size(); ++i)
    if (is_positional(*choice.arguments[i])) by_position.insert(i);
  for (size_t i = 0; i < choice.arguments.size(); ++i) {
    const Argument& argument = *choice.arguments[i];
    size_t position = i;
    if (!is_positional(argument)) {
      position = static_cast<size_t>(std::find_if(parameters.begin(), parameters.end(),
                                                  [&](const auto& p) { return p.name == argument.name; }) -
                                     parameters.begin());
      if (position == parameters.size()) {
        std::vector<std::string> names;
        for (const ParameterDefinition& parameter : parameters) names.push_back(parameter.name);
        Error(argument.name_range, fmt::format("{}() has no parameter '{}'", name, argument.name))
            .suggestion = SuggestName(argument.name, names);
        ok = false;
        continue;
      }
      const std::string twice = fmt::format("the argument '{}' of {}() is given twice", argument.name, name);
      if (by_position.contains(position)) {
        Error(argument.name_range, twice);
        ok = false;
        continue;
      }
      if ((*bound)[position] != nullptr)
        program_.diagnostics.Warning(*path_, argument.name_range, twice + "; the last one counts");
    }
    (*bound)[position] = &argument;
  }
  for (size_t i = 0; ok && i < parameters.size(); ++i) {
    if ((*bound)[i] != nullptr || parameters[i].default_value != nullptr) continue;
    Error(call.range, fmt::format("the argument '{}' of {}() is missing", parameters[i].name, name));
    ok = false;
  }
  return ok;
}

size_t ResultsOf(const CallChoice& choice) {
  if (!choice.selector.empty()) return 1;
  size_t count = std::string::npos;
  for (const auto& [type, function] : choice.functions)
    count = std::min(count, function->definition->results.size());
  return choice.is_eval ? std::min<size_t>(count, 1) : count + choice.by.size();
}

// Ends the block, whose last act is to make the arguments, and calls. The calls in the arguments are made
// already. False after an error; results are defined anyway.
bool BodyBuilder::EmitCall(const Expression& call, const CallChoice& choice,
                           std::vector<std::string> results) {
  if (!choice.by.empty() && results.size() != ResultsOf(choice)) {
    ReportGradientCount(call, choice, results.size());
    for (const std::string& result : results) scope_[result] = {LiveIn(), call.range};
    return false;
  }
  const bool is_known = choice.selector.empty() && choice.functions.size() == 1 &&
                        !Expands(choice, *choice.functions[0].second);
  for (const auto& [type, function] : choice.functions) program_.Need(*function, At(call.name_range));
  Block block;
  const bool ok = is_known ? PassArguments(call, choice, &block) : PassToCandidates(call, choice, &block);
  Flush();
  block.gives_list = choice.gives_list;
  const std::vector<std::string> derivatives(results.end() - static_cast<std::ptrdiff_t>(choice.by.size()),
                                             results.end());
  results.resize(results.size() - derivatives.size());
  // Of a function without results all targets lose their values.
  const size_t bound = ResultsOf(choice) == 0 ? 0 : results.size();
  if (is_known && !choice.gives_list && bound == results.size())
    results.resize(choice.functions[0].second->definition->results.size());
  block.results = results;
  for (size_t i = 0; i < bound; ++i) {
    if (results[i].empty()) continue;
    const bool is_scalar = is_known && !choice.gives_list &&
                           choice.functions[0].second->definition->results[i].data_type == DataType::kScalar;
    if (is_scalar || (choice.is_eval && !choice.gives_list)) block.results[i] = NewTemporary();
  }
  const std::vector<std::string> given = block.results;
  block.results.insert(block.results.end(), derivatives.begin(), derivatives.end());
  blocks_.push_back(std::move(block));
  for (size_t i = 0; i < derivatives.size(); ++i) {
    LiveIn known;
    known.info = ValueInfo::OfDeclared(choice.by[i]->data_type, choice.by[i]->value_type);
    scope_[derivatives[i]] = {std::move(known), call.range};
  }
  for (size_t i = 0; i < bound; ++i) {
    if (results[i].empty()) continue;
    if (is_known && !choice.is_eval) {
      const DmlFunction& function = *choice.functions[0].second;
      BindResult(call, function, function.definition->results[i], given[i], results[i]);
    } else {
      BindResultOfCandidates(call, choice, i, given[i], results[i]);
    }
  }
  return ok;
}

bool BodyBuilder::PassArguments(const Expression& call, const CallChoice& choice, Block* block) {
  const DmlFunction& function = *choice.functions[0].second;
  std::vector<const Argument*> bound;
  const bool ok = BindArguments(call, choice, function, &bound);
  *block = NewBlock(Block::Kind::kCall, call.range);
  block->function = function.key;
  if (!choice.by.empty()) {
    GradientRequest request{"", function.key, {}, At(call.name_range)};
    for (const ParameterDefinition* parameter : choice.by) request.parameters.push_back(parameter->name);
    request.name = GradientName(request.function, request.parameters);
    block->function = request.name;
    program_.NeedGradient(std::move(request));
  }
  if (!ok) {
    for (const Argument* argument : choice.arguments)
      if (!IsList(*argument->value)) BuildExpression(*argument->value);
    return false;
  }
  for (size_t i = 0; i < bound.size(); ++i) {
    const ParameterDefinition& parameter = function.definition->parameters[i];
    block->arguments.emplace_back(
        parameter.name, bound[i] != nullptr ? PassArgument(call, function, parameter, *bound[i])
                                            : PassDefault(call, function, parameter, block->arguments));
  }
  return true;
}

// Candidates get the values as they are: the call that one of them is converts them.
bool BodyBuilder::PassToCandidates(const Expression& call, const CallChoice& choice, Block* block) {
  std::map<const Argument*, std::string> passed;
  std::vector<std::string> variables;
  for (const Argument* argument : choice.arguments) {
    variables.push_back(PassOperand(*argument->value));
    passed[argument] = variables.back();
  }
  bool ok = true;
  std::vector<CallCandidate> candidates;
  for (const auto& [type, function] : choice.functions) {
    CallCandidate candidate;
    candidate.first_argument = choice.is_eval ? DataType::kUnknown : type;
    candidate.function = function->key;
    std::vector<const Argument*> bound;
    if (Expands(choice, *function)) {
      const DmlFunction& called = program_.ForList(*function);
      program_.Need(called, At(call.name_range));
      candidate.function = called.key;
      candidate.arguments = {{"", variables[0]}};
    } else {
      ok &= BindArguments(call, choice, *function, &bound);
    }
    for (size_t i = 0; ok && i < bound.size(); ++i) {
      const ParameterDefinition& parameter = function->definition->parameters[i];
      candidate.arguments.emplace_back(
          parameter.name, bound[i] != nullptr ? passed[bound[i]]
                                              : PassDefault(call, *function, parameter, candidate.arguments));
    }
    candidates.push_back(std::move(candidate));
  }
  *block = NewBlock(Block::Kind::kCall, call.range);
  block->candidates = std::move(candidates);
  block->first_argument = variables.empty() ? "" : variables[0];
  block->selector = choice.selector;
  if (!choice.selector.empty())
    program_.NeedByName({block->id, file_, At(call.name_range), std::move(variables), choice.first_argument});
  return ok;
}

// What a call left in `given` when more than one function may have been called, or one by its name.
void BodyBuilder::BindResultOfCandidates(const Expression& call, const CallChoice& choice, size_t result,
                                         const std::string& given, const std::string& name) {
  LiveIn known;
  if (choice.gives_list) {
    known.info = ValueInfo::OfDeclared(DataType::kList, ValueType::kUnknown);
  } else if (choice.is_eval) {
    const NodeId value = block_.Read(given, LiveIn(), At(call.range));
    block_.Assign(name, block_.Add("as.matrix", {value}, At(call.range), {{"eval", Scalar(true)}}),
                  At(call.range));
    known.info = ValueInfo::OfMatrix(Shape());
  } else {
    const auto declared = [&](const auto& entry) {
      return entry.second->definition->results[result].data_type;
    };
    const DataType type = declared(choice.functions[0]);
    const bool is_same = std::all_of(choice.functions.begin(), choice.functions.end(),
                                     [&](const auto& entry) { return declared(entry) == type; });
    if (is_same) known.info = ValueInfo::OfDeclared(type, ValueType::kUnknown);
  }
  scope_[name] = {std::move(known), call.range};
}

// The variable `name` is what the call has left in `given`: a scalar as the declared type.
void BodyBuilder::BindResult(const Expression& call, const DmlFunction& function,
                             const ParameterDefinition& result, const std::string& given,
                             const std::string& name) {
  LiveIn known;
  known.info = ValueInfo::OfDeclared(result.data_type, ValueType::kUnknown);
  if (result.data_type == DataType::kScalar) {
    const NodeId value = block_.Read(given, known, At(call.range));
    std::vector<std::pair<std::string, Scalar>> attributes = {
        {"type", Scalar(std::string(Name(result.value_type)))},
        {"what", Scalar(fmt::format("function '{}': result '{}'", function.name, result.name))}};
    if (KeepsFractions(*function.definition, result)) attributes.emplace_back("keeps.fractions", true);
    const NodeId declared = block_.Add("as.declared", {value}, At(call.range), std::move(attributes));
    block_.Assign(name, declared, At(call.range));
    known = {block_.InfoOf(declared), block_.ValueOf(declared)};
  }
  scope_[name] = {std::move(known), call.range};
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
  if (const std::optional<std::string_view> instead = InsteadOfNative(call.name))
    return program_.ReportUnimplemented(*path_, call.name_range, fmt::format("{}() is", call.name), *instead);
  if (IsElsewhere(call.name)) return program_.ReportMissingLibrary(*path_, call);
  std::vector<std::string> natives = ops::BuiltinNames();
  natives.insert(natives.end(), std::begin(kListBuiltins), std::end(kListBuiltins));
  natives.insert(natives.end(), std::begin(kOtherCalls), std::end(kOtherCalls));
  SuggestFunction(call.name, natives,
                  &Error(call.name_range, fmt::format("undefined function '{}'", call.name)));
}

// The nearest name of a function of the file, of the natives that may be meant, or of the library.
void BodyBuilder::SuggestFunction(const std::string& name, const std::vector<std::string>& natives,
                                  Diagnostic* diagnostic) const {
  std::vector<std::string> candidates = program_.functions.NamesIn(file_, "");
  candidates.insert(candidates.end(), natives.begin(), natives.end());
  for (std::string& function : LibraryFunctionNames()) candidates.push_back(std::move(function));
  const std::span<const std::string_view> elsewhere = FunctionsElsewhere();
  candidates.insert(candidates.end(), elsewhere.begin(), elsewhere.end());
  diagnostic->suggestion = SuggestName(name, candidates);
  const bool is_missing = IsElsewhere(diagnostic->suggestion) &&
                          program_.loader.options().libraries.empty() &&
                          program_.functions.Find(file_, "", diagnostic->suggestion) == nullptr;
  if (is_missing)
    diagnostic->notes.push_back(fmt::format("{}() is a function of the library; {}", diagnostic->suggestion,
                                            WhereLibraryIs(diagnostic->suggestion)));
}

}  // namespace heddle::compiler
