// SPDX-License-Identifier: Apache-2.0
#include "compiler/warnings/warnings.h"

#include "compiler/warnings/warners.h"

namespace heddle::compiler {

void WarnOfMistakes(const ScriptSet& scripts, const std::map<std::string, std::string>& arguments,
                    Diagnostics* diagnostics) {
  for (const ScriptFile& file : scripts.files) {
    if (file.is_library) continue;
    const Warner warn = [&](const SourceRange& range, std::string message) -> Diagnostic& {
      return diagnostics->Warning(file.path, range, std::move(message));
    };
    std::vector<const std::vector<Statement>*> bodies;
    // Of a sourced file only the functions count.
    if (&file == &scripts.files[0]) bodies.push_back(&file.statements);
    for (const FunctionDefinition& function : file.functions) bodies.push_back(&function.body);
    for (const std::vector<Statement>* body : bodies) {
      ForEachList(*body, [&](const std::vector<Statement>& list) { WarnOfList(list, warn); });
      ForEachStatement(*body, [&](const Statement& statement) {
        WarnOfStatement(statement, warn);
        ForEachExpressionOf(statement,
                            [&](const Expression& expression) { WarnOfExpression(expression, warn); });
      });
      WarnOfUnusedResults(scripts, file, *body, warn);
    }
  }
  WarnOfArguments(scripts, arguments, diagnostics);
}

}  // namespace heddle::compiler
