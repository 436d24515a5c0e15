// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "compiler/parse/ast.h"
#include "ops/base/operator.h"

/// Going through syntax trees.
namespace heddle::compiler {

/// Calls visit with the expression and all inside it, from the outside in.
void ForEachExpression(const Expression& expression,
                       const std::function<void(const Expression& expression)>& visit);

/// The same for all that a statement computes itself: of an if or a loop the condition or the bounds.
void ForEachExpressionOf(const Statement& statement,
                         const std::function<void(const Expression& expression)>& visit);

/// Calls visit with each list of statements: the outer one, then those inside ifs and loops.
void ForEachList(std::span<const Statement> statements,
                 const std::function<void(std::span<const Statement> statements)>& visit);

/// Calls visit with each statement, also with those inside others.
void ForEachStatement(std::span<const Statement> statements,
                      const std::function<void(const Statement& statement)>& visit);

/// True for a call of the native function of that name: print(...).
bool IsCallOf(const Expression& expression, std::string_view name);

/// The native function that a call means; nullptr for one of a script or of the library.
const ops::Operator* BuiltinOf(const Expression& call);

}  // namespace heddle::compiler
