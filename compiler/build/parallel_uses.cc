// SPDX-License-Identifier: Apache-2.0
#include "compiler/build/parallel_uses.h"

#include <algorithm>
#include <utility>

namespace heddle::compiler {
namespace {

bool IsLoop(const Statement& statement) {
  return statement.kind == Statement::Kind::kFor || statement.kind == Statement::Kind::kParallelFor;
}

bool IsUnchecked(const Statement& statement) {
  return std::any_of(statement.options.begin(), statement.options.end(), [](const ParallelForOption& option) {
    return option.name == "check" && option.text == "0";
  });
}

// nrow(X): no cell is read.
bool IsSizeOfVariable(const Expression& expression) {
  return expression.kind == Expression::Kind::kCall && expression.name_space.empty() &&
         expression.arguments.size() == 1 &&
         (expression.name == "nrow" || expression.name == "ncol" || expression.name == "length") &&
         expression.arguments[0].value->kind == Expression::Kind::kIdentifier;
}

Bounds Exactly(const Polynomial& value) {
  if (!value.IsWhole()) return {};
  return {{value}, {value}};
}

}  // namespace

ParallelUses::ParallelUses(const Statement& loop, const std::map<std::string, DataType>& outer,
                           const FindArgument& argument, bool trusts_unchecked)
    : loop_(loop), outer_(outer), argument_(argument), trusts_unchecked_(trusts_unchecked) {
  // The header is computed before the body changes anything, but a name may mean another value there than in
  // the body: only numbers, and what the body leaves alone, tell something.
  Count(loop.body);
  const std::optional<Polynomial> from = Exact(*loop.from);
  const std::optional<Polynomial> to = Exact(*loop.to);
  if (from && to && from->AsConstant() && to->AsConstant()) {
    const bool is_up = *from->AsConstant() <= *to->AsConstant();
    counter_ = {{is_up ? *from : *to}, {is_up ? *to : *from}};
  }
  if (loop.increment != nullptr) {
    const std::optional<Polynomial> increment = Exact(*loop.increment);
    if (increment && increment->IsPositiveSum()) step_ = *increment;
    if (increment && (*increment * Polynomial(-1)).IsPositiveSum()) step_ = *increment * Polynomial(-1);
  }
  Visit(loop.body);
}

void ParallelUses::Count(const std::vector<Statement>& statements) {
  for (const Statement& statement : statements) {
    for (const Target& target : statement.targets)
      if (target.index == nullptr) ++assignments_[target.name];
    if (IsLoop(statement)) {
      ++assignments_[statement.name];
      ++loops_[statement.name];
    }
    Count(statement.body);
    Count(statement.otherwise);
  }
}

void ParallelUses::Visit(const std::vector<Statement>& statements) {
  for (const Statement& statement : statements) Visit(statement);
}

void ParallelUses::Visit(const Statement& statement) {
  for (const ExpressionPointer* part :
       {&statement.value, &statement.from, &statement.to, &statement.increment})
    if (*part) Visit(**part);
  for (const Target& target : statement.targets) {
    if (target.index) {
      VisitIndex(*target.index);
      AddIndexed(target.name, *target.index, true, target.range);
      if (statement.kind == Statement::Kind::kAccumulate)
        AddIndexed(target.name, *target.index, false, target.range);
    } else if (statement.kind == Statement::Kind::kAccumulate) {
      if (outer_.contains(target.name)) uses_[target.name].accumulations.push_back(target.range);
    } else {
      AddWhole(target.name, true, target.range);
    }
  }
  if (IsLoop(statement)) {
    AddWhole(statement.name, true, statement.name_range, true);
    CountLoop(statement);
  }
  const bool defines = statement.kind == Statement::Kind::kAssign && statement.targets[0].index == nullptr;
  if (defines && assignments_[statement.targets[0].name] == 1)
    definitions_[statement.targets[0].name] = BoundsOf(*statement.value);
  // What a parfor inside does is the script's own promise where it says check=0.
  if (trusts_unchecked_ && IsUnchecked(statement)) return;
  Visit(statement.body);
  Visit(statement.otherwise);
}

// Loops over one name are one to the rest, so they must count through the same.
void ParallelUses::CountLoop(const Statement& loop) {
  const InnerLoop values = ValuesOf(loop);
  const auto [known, is_new] = inner_loops_.try_emplace(loop.name, values);
  const bool is_same =
      known->second.values.lower == values.values.lower && known->second.values.upper == values.values.upper;
  if (!is_same || loops_[loop.name] != assignments_[loop.name]) known->second.values = {};
  known->second.may_turn |= values.may_turn;
}

InnerLoop ParallelUses::ValuesOf(const Statement& loop) {
  InnerLoop result;
  const Bounds from = BoundsOf(*loop.from);
  const Bounds to = BoundsOf(*loop.to);
  result.values = {from.lower, to.upper};
  const auto number = [](const std::vector<Polynomial>& bounds) {
    return bounds.size() == 1 ? bounds[0].AsConstant() : std::nullopt;
  };
  bool is_down = false;
  if (loop.increment != nullptr) {
    const std::optional<Polynomial> increment = Exact(*loop.increment);
    if (!increment || !increment->AsConstant()) return {};
    is_down = *increment->AsConstant() < 0;
  } else if (number(from.lower) && number(to.upper)) {
    is_down = *number(from.lower) > *number(to.upper);
  } else {
    result.may_turn = true;
  }
  if (is_down) result.values = {to.lower, from.upper};
  return result;
}

void ParallelUses::Visit(const Expression& expression) {
  for (const ExpressionPointer& operand : expression.operands) Visit(*operand);
  if (expression.kind == Expression::Kind::kIdentifier) AddWhole(expression.name, false, expression.range);
  if (expression.index) VisitIndex(*expression.index);
  if (expression.kind == Expression::Kind::kIndexed)
    AddIndexed(expression.name, *expression.index, false, expression.range);
  for (const Argument& argument : expression.arguments)
    if (!IsSizeOfVariable(expression)) Visit(*argument.value);
}

void ParallelUses::VisitIndex(const Index& index) {
  for (const IndexRange* range : {&index.rows, &index.columns})
    for (const Expression* bound : {range->from.get(), range->to.get()})
      if (bound != nullptr) Visit(*bound);
}

void ParallelUses::AddWhole(const std::string& name, bool write, const SourceRange& range, bool counts) {
  if (!outer_.contains(name)) return;
  Access access;
  access.whole = true;
  access.write = write;
  access.counts = counts;
  access.range = range;
  uses_[name].accesses.push_back(std::move(access));
}

void ParallelUses::AddIndexed(const std::string& name, const Index& index, bool write,
                              const SourceRange& range) {
  if (!outer_.contains(name)) return;
  Access access;
  access.write = write;
  access.range = range;
  const IndexRange* ranges[2] = {&index.rows, &index.columns};
  for (int i = 0; i < 2; ++i) {
    if (ranges[i]->kind == IndexRange::Kind::kAll) continue;
    const Expression& to = ranges[i]->kind == IndexRange::Kind::kRange ? *ranges[i]->to : *ranges[i]->from;
    access.dimensions[i] = {BoundsOf(*ranges[i]->from).lower, BoundsOf(to).upper};
  }
  uses_[name].accesses.push_back(std::move(access));
}

std::optional<Polynomial> ParallelUses::Exact(const Expression& expression) {
  const Bounds bounds = BoundsOf(expression);
  if (bounds.lower.size() == 1 && bounds.lower == bounds.upper) return bounds.lower[0];
  return std::nullopt;
}

Bounds ParallelUses::BoundsOf(const Expression& expression) {
  switch (expression.kind) {
    case Expression::Kind::kLiteral:
      if (!expression.literal.IsString()) return Exactly(Polynomial(expression.literal.AsDouble()));
      return {};
    case Expression::Kind::kParameter: {
      const std::optional<Scalar> given = argument_(expression.name);
      if (!given || given->IsString()) return {};
      return Exactly(Polynomial(given->AsDouble()));
    }
    case Expression::Kind::kIdentifier: {
      auto definition = definitions_.find(expression.name);
      if (definition != definitions_.end()) return definition->second;
      const bool is_counter = expression.name == loop_.name && keeps_counter();
      const bool is_loop = is_counter || inner_loops_.contains(expression.name);
      if (!is_loop && assignments_.contains(expression.name)) return {};
      return Exactly(Polynomial::Symbol(expression.name));
    }
    case Expression::Kind::kUnary:
      if (std::optional<Polynomial> x = Exact(*expression.operands[0])) {
        if (expression.name == "-") return Exactly(*x * Polynomial(-1));
        if (expression.name == "+") return Exactly(*x);
      }
      return {};
    case Expression::Kind::kBinary: {
      const std::optional<Polynomial> a = Exact(*expression.operands[0]);
      const std::optional<Polynomial> b = Exact(*expression.operands[1]);
      if (!a || !b) return {};
      if (expression.name == "+") return Exactly(*a + *b);
      if (expression.name == "-") return Exactly(*a - *b);
      if (expression.name == "*") return Exactly(*a * *b);
      return {};
    }
    case Expression::Kind::kCall: return BoundsOfCall(expression);
    case Expression::Kind::kIndexed:
    case Expression::Kind::kIndexedValue:
    case Expression::Kind::kList: return {};
  }
  return {};
}

Bounds ParallelUses::BoundsOfCall(const Expression& call) {
  if (IsSizeOfVariable(call)) {
    const std::string& name = call.arguments[0].value->name;
    if (assignments_.contains(name)) return {};
    return Exactly(Polynomial::Symbol(call.name + "(" + name + ")"));
  }
  Bounds bounds;  // min(a, b) is at most a, and at most b
  if (call.name != "min" && call.name != "max") return bounds;
  for (const Argument& argument : call.arguments) {
    const Bounds of_argument = BoundsOf(*argument.value);
    const bool is_min = call.name == "min";
    std::vector<Polynomial>& to = is_min ? bounds.upper : bounds.lower;
    const std::vector<Polynomial>& from = is_min ? of_argument.upper : of_argument.lower;
    to.insert(to.end(), from.begin(), from.end());
  }
  return bounds;
}

}  // namespace heddle::compiler
