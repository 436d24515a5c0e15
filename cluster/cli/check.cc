// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/report.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"

namespace heddle::cluster::cli {
namespace {

const std::vector<Option>& Options() {
  static const std::vector<Option> options = ScriptOptions();
  return options;
}

int Run(const Arguments& arguments) {
  const Result<ScriptInput> script = ReadScript(arguments);
  const Status status = script.ok() ? Compile(*script, arguments).status() : script.status();
  if (arguments.Has("json")) PrintOutput(OutcomeJson(status) + "\n");
  if (!status.ok()) return arguments.Has("json") ? ExitCode(status) : Report(status);
  if (!arguments.Has("json")) PrintOutput(script->name + ": no errors\n");
  return 0;
}

}  // namespace

const Verb kCheckVerb = {"check", "find all errors of a script without running it",
                         "check SCRIPT.dml|-e CODE|- [-args V... | -nvargs K=V...]", Options(), "heddle check train.dml", Run};

}  // namespace heddle::cluster::cli
