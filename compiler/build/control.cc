// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "compiler/build/body_builder.h"
#include "compiler/build/parallel_for.h"
#include "compiler/build/parallel_options.h"

namespace heddle::compiler {

std::set<std::string> AssignedNames(const std::vector<Statement>& statements) {
  std::set<std::string> names;
  for (const Statement& statement : statements) {
    for (const Target& target : statement.targets) names.insert(target.name);
    if (statement.kind == Statement::Kind::kFor || statement.kind == Statement::Kind::kParallelFor)
      names.insert(statement.name);
    names.merge(AssignedNames(statement.body));
    names.merge(AssignedNames(statement.otherwise));
  }
  return names;
}

// `decided`: the loop whose predicate is computed at the end of each round, into `decision`.
std::vector<Block> BodyBuilder::BuildBody(const std::vector<Statement>& statements, const Statement* decided,
                                          const std::string& decision) {
  std::vector<Block> outer = std::exchange(blocks_, {});
  BuildStatements(statements);
  if (decided != nullptr && !program_.diagnostics.HasErrors()) {  // what is wrong with it was said before
    FindEarlyReads(*decided);
    HoistCalls(*decided->value);
    AssignDecision(*decided, decision);
  }
  Flush();
  return std::exchange(blocks_, std::move(outer));
}

NodeId BodyBuilder::BuildDecidingValue(const Statement& statement) {
  const std::string_view what = statement.kind == Statement::Kind::kIf ? "if" : "while";
  const Expression& predicate = *statement.value;
  if (predicate.kind == Expression::Kind::kLiteral) {
    const Scalar& literal = predicate.literal;
    if (literal.IsString()) {
      Error(predicate.range, fmt::format("the predicate of '{}' is a string", what));
    } else if (!literal.IsBoolean() && literal.AsDouble() != 0 && literal.AsDouble() != 1) {
      program_.diagnostics.Warning(*path_, predicate.range,
                                   fmt::format("the predicate of '{}' is always true", what));
    }
  }
  const NodeId value = BuildExpression(predicate);
  if (InfoOf(value).IsTabular()) {
    Error(predicate.range, fmt::format("the predicate of '{}' must be a scalar, not a {}", what,
                                       Name(InfoOf(value).data_type)))
        .notes.push_back("as.scalar(X) makes a scalar of a 1x1 matrix");
  }
  return value;
}

Graph BodyBuilder::BuildPredicate(const Statement& statement) {
  const NodeId value = BuildDecidingValue(statement);
  block_.Assign(Block::kPredicate, value, At(statement.value->range));
  return block_.Finish();
}

void BodyBuilder::AssignDecision(const Statement& loop, const std::string& decision) {
  const NodeId value = BuildDecidingValue(loop);
  block_.Assign(decision, value, At(loop.value->range));
  LiveIn known;
  known.info = InfoOf(value);
  known.info.value_type = ValueType::kUnknown;  // of all rounds
  scope_[decision] = {std::move(known), loop.value->range};
}

void BodyBuilder::BuildIf(const Statement& statement) {
  HoistCalls(*statement.value);
  Flush();
  Block block = NewBlock(Block::Kind::kIf, statement.range);
  block.graph = BuildPredicate(statement);
  const Scope before = scope_;
  block.body = BuildBody(statement.body);
  const Scope after_body = std::exchange(scope_, before);
  block.otherwise = BuildBody(statement.otherwise);
  JoinScopes(after_body);
  blocks_.push_back(std::move(block));
}

void BodyBuilder::BuildWhile(const Statement& statement) {
  Flush();
  ForgetAssigned(statement.body);
  // A predicate with steps in it is computed before the loop and at the end of each round; the loop reads
  // what came out.
  const size_t steps_before = blocks_.size();
  HoistCalls(*statement.value);
  std::string decision;
  if (blocks_.size() > steps_before) {
    decision = NewTemporary();
    AssignDecision(statement, decision);
    Flush();
  }
  Block block = NewBlock(Block::Kind::kWhile, statement.range);
  if (decision.empty()) {
    block.graph = BuildPredicate(statement);
  } else {
    const SourcePosition position = At(statement.value->range);
    block_.Assign(Block::kPredicate, block_.Read(decision, scope_[decision].known, position), position);
    block.graph = block_.Finish();
  }
  const Scope before = scope_;
  block.body = BuildBody(statement.body, decision.empty() ? nullptr : &statement, decision);
  CheckLoopTypes(statement, before);
  JoinScopes(before);
  blocks_.push_back(std::move(block));
}

Graph BodyBuilder::BuildBounds(const Statement& statement) {
  const auto bound = [&](const ExpressionPointer& expression, const char* variable, const char* what) {
    if (expression == nullptr) return;
    const NodeId value = BuildExpression(*expression);
    if (InfoOf(value).IsTabular()) {
      Error(expression->range,
            fmt::format("the {} of a loop must be a scalar, not a {}", what, Name(InfoOf(value).data_type)))
          .notes.push_back("as.scalar(X) makes a scalar of a 1x1 matrix");
    }
    block_.Assign(variable, value, At(expression->range));
  };
  bound(statement.from, Block::kFrom, "first value");
  bound(statement.to, Block::kTo, "last value");
  bound(statement.increment, Block::kIncrement, "increment");
  return block_.Finish();
}

void BodyBuilder::BuildFor(const Statement& statement) {
  for (const ExpressionPointer* bound : {&statement.from, &statement.to, &statement.increment})
    if (*bound != nullptr) HoistCalls(**bound);
  Flush();
  const bool parallel = statement.kind == Statement::Kind::kParallelFor;
  Block block = NewBlock(parallel ? Block::Kind::kParallelFor : Block::Kind::kFor, statement.range);
  block.graph = BuildBounds(statement);
  block.has_increment = statement.increment != nullptr;
  ForgetAssigned(statement.body);
  const Scope before = scope_;
  const auto renamed = renamed_;
  if (parallel) BuildParallelBody(statement, &block);
  block.variable = VariableFor(statement.name);
  LiveIn counter;
  counter.info = ValueInfo::OfScalar(ValueType::kInteger);
  DefineAs(statement.name, std::move(counter), statement.name_range);
  block.body = BuildBody(statement.body);
  renamed_ = renamed;
  // What an iteration of a parfor makes for itself is gone after it.
  if (parallel)
    std::erase_if(scope_, [&](const auto& entry) {
      const bool is_local = entry.first != statement.name && !before.contains(entry.first);
      if (is_local && entry.first != block.variable) block.locals.push_back(entry.first);
      return is_local;
    });
  CheckLoopTypes(statement, before);
  JoinScopes(before);
  blocks_.push_back(std::move(block));
}

// Checks that iterations are independent. What loops inside count with becomes a variable of the iteration.
void BodyBuilder::BuildParallelBody(const Statement& statement, Block* block) {
  const auto argument = [this](const std::string& name) { return FindScriptArgument(name); };
  const ParallelForOptions options = ReadParallelForOptions(
      statement, argument,
      [this](const ParallelForOption& option, const std::string& name) {
        if (!IsOpenArgument(name)) ReportMissingArgument(name, option.text_range);
      },
      [this](const ParallelForOption& option, std::string message) -> Diagnostic& {
        return Error(option.text_range, std::move(message));
      });
  block->most_workers = options.most_workers;
  std::map<std::string, DataType> outer;
  for (const auto& [name, variable] : scope_) outer.emplace(name, variable.known.info.data_type);
  for (const auto& [name, variable] : renamed_) {
    auto found = scope_.find(variable);
    if (found != scope_.end()) outer[name] = found->second.known.info.data_type;
  }
  const auto check = [&](bool trusts_unchecked) {
    return CheckParallelFor(statement, outer, argument, trusts_unchecked);
  };
  std::vector<std::string> locals;
  if (options.is_checked) {
    ParallelForReport report = check(/*trusts_unchecked=*/true);
    for (const ParallelForReport::Conflict& conflict : report.conflicts) {
      Error(conflict.range,
            fmt::format("iterations of the parfor depend on each other through '{}'", conflict.variable))
          .notes = {conflict.why, "a 'for' loop, or the option check=0, runs it in order"};
    }
    locals = std::move(report.locals);
  }
  // What a script promises by check=0 is not enough for iterations to run at once: results must not depend on
  // how many do.
  ParallelForReport report = check(/*trusts_unchecked=*/false);
  block->independent = report.conflicts.empty();
  if (block->independent) locals = std::move(report.locals);
  for (const std::string& name : locals) renamed_[name] = fmt::format("%{}.{}", name, block->id);
  if (!block->independent) {
    const ParallelForReport::Conflict& conflict = report.conflicts[0];
    block->in_order =
        fmt::format("iterations may depend on each other through '{}': {}", conflict.variable, conflict.why);
    return;
  }
  for (const std::string& name : report.merged) block->merged.push_back(VariableFor(name));
  for (const std::string& name : report.sums) block->sums.push_back(VariableFor(name));
  for (const std::string& name : report.natural) block->natural.push_back(VariableFor(name));
  for (const std::string& name : report.upward) block->upward.push_back(VariableFor(name));
}

// After an if or a loop: what holds whichever way was taken.
void BodyBuilder::JoinScopes(const Scope& other) {
  // Both are sorted: one way through both, as a script may have many variables and many branches.
  auto mine = scope_.begin();
  for (const auto& [name, theirs] : other) {
    for (; mine != scope_.end() && mine->first < name; ++mine) mine->second.known.value.reset();
    const bool is_new = mine == scope_.end() || mine->first != name;
    if (is_new) mine = scope_.emplace_hint(mine, name, theirs);
    Variable& variable = (mine++)->second;
    variable.numbers_rows &= theirs.numbers_rows;
    if (variable.made_by != theirs.made_by) variable.made_by = nullptr;
    if (variable.lineage_of != theirs.lineage_of) variable.lineage_of.clear();
    if (variable.conflict.empty() && !theirs.conflict.empty()) {
      variable.conflict = theirs.conflict;
      variable.assigned_at = theirs.assigned_at;
    }
    LiveIn& known = variable.known;
    if (is_new) {
      known.value.reset();
      continue;
    }
    const ValueInfo& their_info = theirs.known.info;
    if (TypeName(variable) != TypeName(theirs)) {
      const bool both_known =
          known.info.data_type != DataType::kUnknown && their_info.data_type != DataType::kUnknown;
      if (both_known) {
        variable.conflict = fmt::format("'{}' is a {} on one way and a {} on another", name, TypeName(theirs),
                                        TypeName(variable));
        variable.is_tensor = false;
        variable.assigned_at = std::max(variable.assigned_at, theirs.assigned_at,
                                        [](const auto& a, const auto& b) { return a.begin < b.begin; });
      }
      known = LiveIn();
      continue;
    }
    if (known.info.value_type != their_info.value_type) known.info.value_type = ValueType::kUnknown;
    if (known.value != theirs.known.value) known.value.reset();
  }
  for (; mine != scope_.end(); ++mine) mine->second.known.value.reset();
}

// Before a loop: what its body assigns may have another value type and value in later rounds.
void BodyBuilder::ForgetAssigned(const std::vector<Statement>& body) {
  for (const std::string& name : AssignedNames(body)) {
    auto found = scope_.find(VariableFor(name));
    if (found == scope_.end()) continue;
    LiveIn& known = found->second.known;
    known.value.reset();
    found->second.numbers_rows = false;
    if (known.info.IsScalar()) known.info.value_type = ValueType::kUnknown;
    if (found->second.is_tensor) scope_[TensorDims(found->first)].known.value.reset();
  }
}

void BodyBuilder::CheckLoopTypes(const Statement& loop, const Scope& before) {
  auto at = scope_.begin();
  for (const auto& [name, old] : before) {
    while (at != scope_.end() && at->first < name) ++at;
    if (at == scope_.end() || at->first != name) at = scope_.emplace_hint(at, name, Variable());
    Variable& variable = at->second;
    const DataType now = variable.known.info.data_type;
    const DataType then = old.known.info.data_type;
    if (TypeName(variable) == TypeName(old) || now == DataType::kUnknown || then == DataType::kUnknown)
      continue;
    variable.conflict =
        fmt::format("'{}' is a {} before the loop and a {} in it", name, TypeName(old), TypeName(variable));
    variable.known = LiveIn();
    variable.is_tensor = false;
    // A round that makes its own never sees the other type; behind the loop nobody knows which it is.
    if (ReadsOfEarlierRounds(loop, name)) ReportConflict(variable);
  }
}

}  // namespace heddle::compiler
