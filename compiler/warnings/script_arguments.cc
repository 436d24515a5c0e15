// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "compiler/warnings/warners.h"

namespace heddle::compiler {
namespace {

void AddNames(std::span<const Statement> statements, std::set<std::string>* names) {
  ForEachStatement(statements, [&](const Statement& statement) {
    if (statement.kind == Statement::Kind::kIfdef) names->insert(statement.name);
    for (const ParallelForOption& option : statement.options)
      if (option.text.starts_with("$")) names->insert(option.text.substr(1));
    ForEachExpressionOf(statement, [&](const Expression& expression) {
      if (expression.kind == Expression::Kind::kParameter) names->insert(expression.name);
    });
  });
}

}  // namespace

// An argument that a script does not read may be meant for another script. One that is nearly an argument
// with a default is a slip: the script runs with the default.
void WarnOfArguments(const ScriptSet& scripts, const std::map<std::string, std::string>& arguments,
                     Diagnostics* diagnostics) {
  std::set<std::string> read;
  for (const ScriptFile& file : scripts.files) {
    AddNames(file.statements, &read);
    for (const FunctionDefinition& function : file.functions) AddNames(function.body, &read);
  }
  std::vector<std::string> not_given;
  for (const std::string& name : read)
    if (!arguments.contains(name) && name[0] > '9') not_given.push_back(name);
  for (const auto& [name, value] : arguments) {
    if (read.contains(name) || name[0] <= '9') continue;
    const std::string nearest = SuggestName(name, not_given);
    if (nearest.empty()) continue;
    diagnostics
        ->Warning(scripts.files[0].path, {},
                  fmt::format("the argument {} is given, but the script does not read ${}", name, name))
        .suggestion = nearest;
  }
}

}  // namespace heddle::compiler
