// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/build/body_builder.h"
#include "compiler/build/other_functions.h"

namespace heddle::compiler {

void BodyBuilder::BuildStatements(std::span<const Statement> statements) {
  for (const Statement& statement : statements) BuildStatement(statement);
}

void BodyBuilder::BuildStatement(const Statement& statement) {
  FindEarlyReads(statement);
  if (BuildListStatement(statement)) return;
  switch (statement.kind) {
    case Statement::Kind::kAssign: return BuildAssign(statement);
    case Statement::Kind::kMultiAssign: return BuildMultiAssign(statement);
    case Statement::Kind::kAccumulate: return BuildAccumulate(statement);
    case Statement::Kind::kCall: return BuildCallStatement(statement);
    case Statement::Kind::kIfdef: return BuildIfdef(statement);
    case Statement::Kind::kIf: return BuildIf(statement);
    case Statement::Kind::kWhile: return BuildWhile(statement);
    case Statement::Kind::kFor:
    case Statement::Kind::kParallelFor: return BuildFor(statement);
    case Statement::Kind::kSource:
    case Statement::Kind::kSetDirectory: return;
  }
}

void BodyBuilder::BuildAssign(const Statement& statement) {
  const Target& target = statement.targets[0];
  const Expression& value = *statement.value;
  if (BuildLineage(statement)) return;
  // x = f(...) binds the result to x itself.
  if (value.kind == Expression::Kind::kCall && target.index == nullptr) {
    if (const Callee* callee = program_.FindCallee(file_, value)) {
      const std::optional<CallChoice> choice = ChooseFunctions(value, *callee);
      if (!choice) return DefineAs(target.name, LiveIn(), target.range);
      if (ResultsOf(*choice) == 0) return CallWithoutResult(value, *choice, statement.targets);
      const std::string& variable = VariableFor(target.name);
      EmitCall(value, *choice, {variable});
      scope_[variable].assigned_at = target.range;
      RememberCall(variable, *choice);
      return;
    }
  }
  HoistCalls(value);
  if (target.index) HoistIndex(*target.index);
  if (value.kind == Expression::Kind::kList && target.index == nullptr) {
    // It may be the naStrings of a read or the cells of a frame.
    return AssignTo(target, JoinElements(value, "\u00b7"));
  }
  if (IsTensor(value)) return AssignTensor(target, value);
  AssignTo(target, BuildExpression(value));
}

// x = f(...) of a function without results: the call is made, and its targets have no value behind it.
void BodyBuilder::CallWithoutResult(const Expression& call, const CallChoice& choice,
                                    const std::vector<Target>& targets) {
  std::vector<std::string> unset;
  for (const Target& target : targets) {
    if (target.index == nullptr) {
      unset.push_back(VariableFor(target.name));
      continue;
    }
    Error(target.range, fmt::format("{}() returns no result for the cells of '{}'", call.name, target.name));
  }
  EmitCall(call, choice, unset);
  for (const std::string& name : unset) scope_.erase(name);
}

void BodyBuilder::AssignTo(const Target& target, NodeId value) {
  if (target.index == nullptr) return Define(target.name, value, target.range);
  const NodeId old_value = ReadVariable(target.name, target.range);
  if (InfoOf(old_value).IsScalar()) {
    Error(target.range, fmt::format("'{}' is a scalar and has no cells to assign", target.name));
    return;
  }
  std::vector<NodeId> inputs = {old_value, value};
  BuildIndex(*target.index, &inputs);
  Define(target.name, block_.Add("indexAssign", std::move(inputs), At(target.range)), target.range);
}

void BodyBuilder::BuildAccumulate(const Statement& statement) {
  const Target& target = statement.targets[0];
  HoistCalls(*statement.value);
  if (target.index) HoistIndex(*target.index);
  NodeId old_value = ReadVariable(target.name, target.range);
  std::vector<NodeId> index;
  if (target.index) {
    BuildIndex(*target.index, &index);
    std::vector<NodeId> inputs = {old_value};
    inputs.insert(inputs.end(), index.begin(), index.end());
    const NodeId part = block_.Add("index", std::move(inputs), At(target.range));
    const NodeId sum = block_.Add("+", {part, BuildExpression(*statement.value)}, At(target.range));
    inputs = {old_value, sum};
    inputs.insert(inputs.end(), index.begin(), index.end());
    Define(target.name, block_.Add("indexAssign", std::move(inputs), At(target.range)), target.range);
    return;
  }
  Define(target.name, block_.Add("+", {old_value, BuildExpression(*statement.value)}, At(target.range)),
         target.range);
}

void BodyBuilder::BuildIfdef(const Statement& statement) {
  const Target& target = statement.targets[0];
  if (target.index) HoistIndex(*target.index);
  if (std::optional<Scalar> given = FindScriptArgument(statement.name)) {
    AssignTo(target, block_.Literal(*std::move(given), At(statement.value->range)));
    return;
  }
  HoistCalls(*statement.value);
  const NodeId otherwise = BuildExpression(*statement.value);
  const bool is_open = IsOpenArgument(statement.name) && InfoOf(otherwise).IsScalar();
  AssignTo(target, is_open ? AnyValue(DataType::kScalar, statement.value->range) : otherwise);
}

void BodyBuilder::BuildMultiAssign(const Statement& statement) {
  const Expression& call = *statement.value;
  const auto define_unknown = [&] {
    for (const Target& target : statement.targets)
      if (target.index == nullptr) DefineAs(target.name, LiveIn(), target.range);
  };
  const Callee* callee = program_.FindCallee(file_, call);
  if (callee == nullptr) {
    const ops::Operator* const builtin = call.name_space.empty() ? ops::FindBuiltin(call.name) : nullptr;
    if (builtin != nullptr && statement.targets.size() <= static_cast<size_t>(builtin->results))
      return BuildBuiltinResults(statement, *builtin);
    if (builtin != nullptr) {
      const int results = builtin->results;
      Error(call.name_range, fmt::format("{}() returns {}, {} variables are assigned", call.name,
                                         results == 1 ? "one result" : fmt::format("{} results", results),
                                         statement.targets.size()));
    } else {
      ReportUnknownFunction(call);
    }
    for (const Argument& argument : call.arguments) BuildExpression(*argument.value);
    return define_unknown();
  }
  const std::optional<CallChoice> choice = ChooseFunctions(call, *callee);
  if (!choice) return define_unknown();
  const size_t count = ResultsOf(*choice);
  if (count == 0) return CallWithoutResult(call, *choice, statement.targets);
  if (choice->by.empty() && statement.targets.size() > count) {
    Error(call.name_range, fmt::format("{}() returns {} result{}, {} variables are assigned", call.name,
                                       count, count == 1 ? "" : "s", statement.targets.size()));
    return define_unknown();
  }
  std::vector<std::string> results(statement.targets.size());
  for (size_t i = 0; i < statement.targets.size(); ++i)
    results[i] = statement.targets[i].index ? NewTemporary() : VariableFor(statement.targets[i].name);
  EmitCall(call, *choice, results);
  for (size_t i = 0; i < statement.targets.size(); ++i) {
    const Target& target = statement.targets[i];
    if (target.index == nullptr) {
      scope_[results[i]].assigned_at = target.range;
    } else {
      HoistIndex(*target.index);
      if (IsListVariable(target.name))
        EmitListAssign(target, results[i]);
      else
        AssignTo(target, block_.Read(results[i], scope_[results[i]].known, At(target.range)));
    }
  }
}

// [C, M] = compress(X): X, and the types of its columns.
std::vector<NodeId> BodyBuilder::BuildSameAndTypes(const Expression& call, const ops::Operator& builtin) {
  const NodeId same = BuildSame(call, builtin);
  const SourcePosition at = At(call.name_range);
  const NodeId frame = InfoOf(same).data_type == DataType::kFrame ? same : block_.Add("as.frame", {same}, at);
  return {same, block_.Add("typeof", {frame}, at)};
}

std::vector<NodeId> BodyBuilder::BuildTuple(const Expression& call, const ops::Operator& builtin,
                                            size_t count) {
  const NodeId tuple = BuildBuiltinNode(call, builtin);
  std::vector<NodeId> results(count, tuple);
  // Nothing else is said of what a wrong call leaves.
  if (block_.NodeOf(tuple).Is("variable")) return results;
  for (size_t i = 0; i < count; ++i)
    results[i] =
        block_.Add("result", {tuple}, At(call.name_range), {{"index", Scalar(static_cast<int64_t>(i))}});
  return results;
}

void BodyBuilder::BuildBuiltinResults(const Statement& statement, const ops::Operator& builtin) {
  const Expression& call = *statement.value;
  HoistCalls(call);
  if (builtin.results == 2 && HasColumnFunction(call)) return BuildEncodeWithFunction(statement);
  if (statement.targets.size() == 1 && builtin.results == 1)
    return AssignTo(statement.targets[0], BuildBuiltin(call, builtin));
  const std::vector<NodeId> results = builtin.form == ops::CallForm::kSame
                                          ? BuildSameAndTypes(call, builtin)
                                          : BuildTuple(call, builtin, statement.targets.size());
  const bool has_index = std::any_of(statement.targets.begin(), statement.targets.end(),
                                     [](const Target& target) { return target.index != nullptr; });
  if (!has_index) {
    for (size_t i = 0; i < statement.targets.size(); ++i) AssignTo(statement.targets[i], results[i]);
    return;
  }
  // Calls in the index of a target end the block of the tuple, which no variable holds.
  std::vector<std::string> names;
  for (const NodeId result : results) {
    names.push_back(NewTemporary());
    Define(names.back(), result, call.range);
  }
  for (size_t i = 0; i < statement.targets.size(); ++i) {
    const Target& target = statement.targets[i];
    if (target.index) HoistIndex(*target.index);
    AssignTo(target, block_.Read(names[i], scope_[names[i]].known, At(target.range)));
  }
}

void BodyBuilder::BuildCallStatement(const Statement& statement) {
  const Expression& call = *statement.value;
  if (const Callee* callee = program_.FindCallee(file_, call)) {
    const std::optional<CallChoice> choice = ChooseFunctions(call, *callee);
    if (choice && choice->is_eval) {
      Error(call.name_range, fmt::format("the result of {}() is not used", call.name))
          .notes.push_back(fmt::format("assign it to a variable: x = {}(...)", call.name));
    } else if (choice) {
      EmitCall(call, *choice, {});
    }
    return;
  }
  const ops::Operator* builtin = call.name_space.empty() ? ops::FindBuiltin(call.name) : nullptr;
  HoistCalls(call);
  if (builtin == nullptr) {
    BuildExpression(call);  // says what is wrong
    return;
  }
  switch (builtin->form) {
    case ops::CallForm::kPrint: return BuildPrint(call);
    case ops::CallForm::kWrite: return BuildWrite(call);
    case ops::CallForm::kStop:
    case ops::CallForm::kAssert: return BuildStopOrAssert(call, *builtin);
    default:
      Error(call.name_range, fmt::format("the result of {}() is not used", call.name))
          .notes.push_back("assign it to a variable: " + AssignmentOf(call.name, builtin->results));
  }
}

}  // namespace heddle::compiler
