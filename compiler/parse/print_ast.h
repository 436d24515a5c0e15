// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "compiler/parse/ast.h"

namespace heddle::compiler {

/// The tree as s-expressions, for tests and explain: "(+ a (* b 2))", "(index X (: 1 n) _)", "(call ns::f a
/// (rows= 3))".
std::string PrintExpression(const Expression& expression);
/// One statement a line, blocks indented by two: "(= x (+ a 1))", "(if (< a b)" ... ")".
std::string PrintStatements(const std::vector<Statement>& statements);
/// Functions, then statements.
std::string PrintScript(const ScriptFile& script);

}  // namespace heddle::compiler
