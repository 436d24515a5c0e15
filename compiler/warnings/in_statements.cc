// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "compiler/parse/print_ast.h"
#include "compiler/warnings/warners.h"

namespace heddle::compiler {
namespace {

bool IsStop(const Statement& statement) {
  return statement.kind == Statement::Kind::kCall && IsCallOf(*statement.value, "stop");
}

void OfStop(std::span<const Statement> statements, const Warner& warn) {
  for (size_t i = 0; i + 1 < statements.size(); ++i) {
    if (!IsStop(statements[i])) continue;
    warn(statements[i + 1].range, "this is never run, because stop() stands before it");
    return;
  }
}

// The path of write(X, path, ...) where it is the same whenever it is written; "" else.
std::string WrittenPath(const Statement& statement) {
  if (statement.kind != Statement::Kind::kCall || !IsCallOf(*statement.value, "write")) return "";
  const std::vector<Argument>& arguments = statement.value->arguments;
  if (arguments.size() < 2 || !arguments[1].name.empty()) return "";
  const Expression& path = *arguments[1].value;
  const bool is_fixed = path.kind == Expression::Kind::kLiteral || path.kind == Expression::Kind::kParameter;
  return is_fixed ? PrintExpression(path) : "";
}

// Two writes of one file in a row of statements that only assign, write or print, and read nothing.
void OfWrites(std::span<const Statement> statements, const Warner& warn) {
  std::map<std::string, const Statement*> written;
  for (const Statement& statement : statements) {
    bool may_read = statement.kind == Statement::Kind::kWhile || statement.kind == Statement::Kind::kIf ||
                    statement.kind == Statement::Kind::kFor ||
                    statement.kind == Statement::Kind::kParallelFor ||
                    statement.kind == Statement::Kind::kSetDirectory;
    ForEachExpressionOf(statement, [&](const Expression& expression) {
      if (expression.kind != Expression::Kind::kCall) return;
      const ops::Operator* const builtin = BuiltinOf(expression);
      may_read |= builtin == nullptr || builtin->form == ops::CallForm::kRead;
    });
    if (may_read) written.clear();
    const std::string path = WrittenPath(statement);
    if (path.empty()) continue;
    const auto [before, is_new] = written.try_emplace(path, &statement);
    if (!is_new)
      warn(statement.range, fmt::format("the file is written again, and what line {} wrote is lost",
                                        before->second->range.begin.line));
    before->second = &statement;
  }
}

// A call may give another value each time.
bool HasCall(const Expression& expression) {
  bool has_call = false;
  ForEachExpression(expression,
                    [&](const Expression& inner) { has_call |= inner.kind == Expression::Kind::kCall; });
  return has_call;
}

// if (c) ... else if (c) ...
void OfConditions(const Statement& statement, const Warner& warn) {
  if (statement.kind != Statement::Kind::kIf || HasCall(*statement.value)) return;
  const std::string condition = PrintExpression(*statement.value);
  for (const Statement* next = &statement; next->otherwise.size() == 1;) {
    next = &next->otherwise[0];
    if (next->kind != Statement::Kind::kIf) return;
    if (PrintExpression(*next->value) != condition) continue;
    warn(next->value->range, fmt::format("this is FALSE here, because line {} tests it before",
                                         statement.value->range.begin.line));
    return;
  }
}

// A call that may end a loop, or differ from one round to the next.
bool MayEndLoop(const Expression& call) {
  const ops::Operator* const builtin = BuiltinOf(call);
  if (builtin == nullptr) return true;
  const bool only_shows = builtin->form == ops::CallForm::kPrint || builtin->form == ops::CallForm::kWrite;
  return builtin->seed_input >= 0 || (!builtin->pure && !only_shows);
}

// A loop whose condition nothing in it changes ends at once or never.
void OfEndlessLoops(const Statement& statement, const Warner& warn) {
  if (statement.kind != Statement::Kind::kWhile) return;
  std::set<std::string> names;
  bool may_end = false;
  const auto look_for_calls = [&](const Expression& expression) {
    may_end |= expression.kind == Expression::Kind::kCall && MayEndLoop(expression);
  };
  ForEachExpression(*statement.value, [&](const Expression& expression) {
    look_for_calls(expression);
    if (expression.kind == Expression::Kind::kIdentifier || expression.kind == Expression::Kind::kIndexed)
      names.insert(expression.name);
  });
  ForEachStatement(statement.body, [&](const Statement& inner) {
    ForEachExpressionOf(inner, look_for_calls);
    may_end |= names.contains(inner.name);
    for (const Target& target : inner.targets) may_end |= names.contains(target.name);
  });
  if (may_end || names.empty() || statement.body.empty()) return;
  warn(statement.value->range, "nothing in the loop changes its condition, so it ends at once or never");
}

void OfLoopVariable(const Statement& statement, const Warner& warn) {
  if (statement.kind != Statement::Kind::kFor && statement.kind != Statement::Kind::kParallelFor) return;
  ForEachStatement(statement.body, [&](const Statement& inner) {
    for (const Target& target : inner.targets)
      if (target.name == statement.name)
        warn(target.range, fmt::format("the loop counts on as if '{}' were not assigned here", target.name))
            .notes.emplace_back("a while loop counts as its body says");
  });
}

}  // namespace

void WarnOfList(std::span<const Statement> statements, const Warner& warn) {
  OfStop(statements, warn);
  OfWrites(statements, warn);
}

void WarnOfStatement(const Statement& statement, const Warner& warn) {
  OfConditions(statement, warn);
  OfEndlessLoops(statement, warn);
  OfLoopVariable(statement, warn);
}

}  // namespace heddle::compiler
