// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "compiler/parse/diagnostics.h"
#include "compiler/warnings/walk.h"

/// The kinds of warnings by what they look at.
namespace heddle::compiler {

using Warner = std::function<Diagnostic&(const SourceRange& range, std::string message)>;

/// in_expressions.cc: comparisons with NaN and of comparisons, divisions by 0, names given twice.
void WarnOfExpression(const Expression& expression, const Warner& warn);

/// in_statements.cc: what follows stop(), and files written twice.
void WarnOfList(std::span<const Statement> statements, const Warner& warn);

/// in_statements.cc: conditions that are tested again, loops that do not end, loop variables that are
/// assigned.
void WarnOfStatement(const Statement& statement, const Warner& warn);

/// unused_results.cc: calls of functions that do nothing but compute what nobody takes.
void WarnOfUnusedResults(const ScriptSet& scripts, const ScriptFile& file,
                         std::span<const Statement> statements, const Warner& warn);

/// script_arguments.cc: arguments of the command line whose names are almost those that the script reads.
void WarnOfArguments(const ScriptSet& scripts, const std::map<std::string, std::string>& arguments,
                     Diagnostics* diagnostics);

}  // namespace heddle::compiler
