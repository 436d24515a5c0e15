// SPDX-License-Identifier: Apache-2.0
#include "compiler/explain.h"

#include "cluster/cli/report.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"
#include "compiler/compile.h"

namespace heddle::cluster::cli {
namespace {

const std::vector<Option>& Options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> all = {{"level", Option::Kind::kValue, "STAGE", "ast, a stage of the compiler, program (default) or all"}};
    for (const Option& option : ScriptOptions()) all.push_back(option);
    return all;
  }();
  return options;
}

int Run(const Arguments& arguments) {
  const Result<ScriptInput> script = ReadScript(arguments);
  if (!script.ok()) return Report(script.status());
  compiler::FileSourceLoader loader(WorkingDirectory());
  compiler::CompileOptions options;
  options.script = script->name;
  options.arguments = script->parameters;
  options.loader = &loader;
  for (const std::string& pass : arguments.rest("disable-pass")) options.disabled_passes.insert(pass);
  compiler::Diagnostics diagnostics;
  const Result<std::string> text =
      compiler::Explain(script->text, options, arguments.Value("level").value_or("program"), &diagnostics);
  if (!text.ok()) return Report(text.status());
  PrintOutput(*text);
  return 0;
}

}  // namespace

const Verb kExplainVerb = {"explain", "show what the compiler makes of a script, stage by stage; runs nothing",
                           "explain [--level STAGE] SCRIPT.dml|-e CODE|- [-args V... | -nvargs K=V...]", Options(),
                           "heddle explain --level all train.dml -nvargs X=data.csv", Run};

}  // namespace heddle::cluster::cli
