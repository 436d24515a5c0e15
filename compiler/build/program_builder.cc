// SPDX-License-Identifier: Apache-2.0
#include "compiler/build/program_builder.h"

#include "compiler/build/body_builder.h"

namespace heddle::compiler {

Program BuildProgram(const ScriptSet& scripts, const BuildOptions& options, Diagnostics* diagnostics) {
  return ProgramBuilder(scripts, options, diagnostics).Build();
}

Program ProgramBuilder::Build() {
  if (scripts.files.empty()) return {};
  program_.script = scripts.files[0].path;
  program_.main = BodyBuilder(this, 0, "").BuildMain(scripts.files[0].statements);
  BuildNeeded();

  // The rest of the main script is checked, then forgotten.
  std::set<std::string> reached;
  for (const auto& [key, function] : program_.functions) reached.insert(key);
  reachable_ = false;
  for (const FunctionDefinition& definition : scripts.files[0].functions)
    Need(*functions.Find(0, "", definition.name));
  BuildNeeded();
  std::erase_if(program_.functions, [&](const auto& entry) { return !reached.contains(entry.first); });
  return std::move(program_);
}

void ProgramBuilder::Need(const DmlFunction& function) {
  if (needed_.insert(function.key).second) waiting_.push_back(&function);
}

void ProgramBuilder::BuildNeeded() {
  while (!waiting_.empty()) {
    const DmlFunction& function = *waiting_.front();
    waiting_.pop_front();
    program_.functions[function.key] = BuildFunction(function);
  }
}

void ProgramBuilder::ReportUnimplemented(const std::string& file, const SourceRange& range,
                                         const std::string& what) {
  if (!reachable_) return;
  diagnostics.Error(file, range, what + " part of DML but Heddle does not run it yet");
}

Function ProgramBuilder::BuildFunction(const DmlFunction& function) {
  const FunctionDefinition& definition = *function.definition;
  const std::string& file = scripts.files[static_cast<size_t>(function.file)].path;
  Function result;
  result.name = function.key;
  result.position = definition.name_range.Position(file);
  const auto convert = [&](const ParameterDefinition& parameter) {
    if (parameter.data_type == DataType::kFrame || parameter.data_type == DataType::kList)
      ReportUnimplemented(file, parameter.range, fmt::format("the type {} is", Name(parameter.data_type)));
    return Parameter{parameter.name, parameter.data_type, parameter.value_type};
  };
  for (const ParameterDefinition& parameter : definition.parameters)
    result.parameters.push_back(convert(parameter));
  for (const ParameterDefinition& parameter : definition.results)
    result.results.push_back(convert(parameter));
  result.body = BodyBuilder(this, function.file, definition.name).BuildFunction(definition);
  return result;
}

}  // namespace heddle::compiler
