// SPDX-License-Identifier: Apache-2.0
#include "compiler/warnings/walk.h"

namespace heddle::compiler {
namespace {

void ForEachOfIndex(const Index& index, const std::function<void(const Expression& expression)>& visit) {
  for (const IndexRange* range : {&index.rows, &index.columns})
    for (const Expression* bound : {range->from.get(), range->to.get()})
      if (bound != nullptr) ForEachExpression(*bound, visit);
}

}  // namespace

void ForEachExpression(const Expression& expression,
                       const std::function<void(const Expression& expression)>& visit) {
  visit(expression);
  for (const ExpressionPointer& operand : expression.operands) ForEachExpression(*operand, visit);
  if (expression.index) ForEachOfIndex(*expression.index, visit);
  for (const Argument& argument : expression.arguments) ForEachExpression(*argument.value, visit);
}

void ForEachExpressionOf(const Statement& statement,
                         const std::function<void(const Expression& expression)>& visit) {
  for (const Target& target : statement.targets)
    if (target.index) ForEachOfIndex(*target.index, visit);
  for (const ExpressionPointer* part :
       {&statement.value, &statement.from, &statement.to, &statement.increment})
    if (*part != nullptr) ForEachExpression(**part, visit);
}

void ForEachList(std::span<const Statement> statements,
                 const std::function<void(std::span<const Statement> statements)>& visit) {
  visit(statements);
  for (const Statement& statement : statements)
    for (const std::vector<Statement>* inner : {&statement.body, &statement.otherwise})
      if (!inner->empty()) ForEachList(*inner, visit);
}

void ForEachStatement(std::span<const Statement> statements,
                      const std::function<void(const Statement& statement)>& visit) {
  for (const Statement& statement : statements) {
    visit(statement);
    ForEachStatement(statement.body, visit);
    ForEachStatement(statement.otherwise, visit);
  }
}

bool IsCallOf(const Expression& expression, std::string_view name) {
  return expression.kind == Expression::Kind::kCall && expression.name_space.empty() &&
         expression.name == name;
}

const ops::Operator* BuiltinOf(const Expression& call) {
  return call.name_space.empty() ? ops::FindBuiltin(call.name) : nullptr;
}

}  // namespace heddle::compiler
