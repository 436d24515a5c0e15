// SPDX-License-Identifier: Apache-2.0
#include "compiler/warnings/warnings.h"

#include <algorithm>

#include "compiler/warnings/warners.h"

namespace heddle::compiler {

namespace {

// `statements` are in that file.
void WarnOf(const ScriptSet& scripts, const ScriptFile& file, std::span<const Statement> statements,
            Diagnostics* diagnostics) {
  const Warner warn = [&](const SourceRange& range, std::string message) -> Diagnostic& {
    return diagnostics->Warning(file.path, range, std::move(message));
  };
  ForEachList(statements, [&](std::span<const Statement> list) { WarnOfList(list, warn); });
  ForEachStatement(statements, [&](const Statement& statement) {
    WarnOfStatement(statement, warn);
    ForEachExpressionOf(statement, [&](const Expression& expression) { WarnOfExpression(expression, warn); });
  });
  WarnOfUnusedResults(scripts, file, statements, warn);
}

}  // namespace

void WarnOfMistakes(const ScriptSet& scripts, const std::map<std::string, std::string>& arguments,
                    const Continuation* continuation, Diagnostics* diagnostics) {
  const ScriptFile& main = scripts.files[0];
  std::span<const Statement> statements(main.statements);
  if (continuation != nullptr) {
    statements = statements.subspan(std::min(continuation->first, statements.size()));
    statements = statements.first(std::min(continuation->count, statements.size()));
  }
  WarnOf(scripts, main, statements, diagnostics);
  for (const ScriptFile& file : scripts.files) {
    if (file.is_library) continue;
    // Of scripts that go on, what was said before is not said again.
    if (!IsWholeScript(continuation) && (&file != &main || !continuation->checks_functions)) continue;
    for (const FunctionDefinition& function : file.functions)
      WarnOf(scripts, file, function.body, diagnostics);
  }
  // Whoever goes on may still read an argument.
  if (IsWholeScript(continuation)) WarnOfArguments(scripts, arguments, diagnostics);
}

}  // namespace heddle::compiler
