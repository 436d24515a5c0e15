// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cluster/cli/check_folder.h"
#include "cluster/cli/report.h"
#include "cluster/cli/run_script.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"

namespace heddle::cluster::cli {
namespace {

using Json = nlohmann::ordered_json;

// For editors: one object of the outcome with everything that was found, errors first.
std::string ToJson(const Status& status, const compiler::Diagnostics& diagnostics) {
  Json json = Json::parse(OutcomeJson(status), nullptr, /*allow_exceptions=*/false);
  json["diagnostics"] = Json::array();
  for (const compiler::Severity severity : {compiler::Severity::kError, compiler::Severity::kWarning})
    for (const compiler::Diagnostic* found : diagnostics.Sorted(severity))
      json["diagnostics"].push_back(
          {{"severity", severity == compiler::Severity::kError ? "error" : "warning"},
           {"file", found->file},
           {"line", found->range.begin.line},
           {"column", found->range.begin.column},
           {"message", found->message},
           {"suggestion", found->suggestion}});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status CheckScript(const engine::Script& script, const Arguments& arguments,
                   compiler::Diagnostics* diagnostics) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Engine> engine, MakeEngine(arguments));
  return Compile(*engine, script, arguments, diagnostics).status();
}

int Run(const Arguments& arguments) {
  if (const std::optional<std::string> folder = arguments.Value("compat")) {
    if (!arguments.positional().empty() || arguments.Has("e") || arguments.Has("f"))
      return Report(Usage("--compat checks the scripts of a folder; a script beside it is too much"));
    return CheckFolder(*folder, arguments);
  }
  compiler::Diagnostics diagnostics;
  const Result<engine::Script> script = ReadScript(arguments);
  Status status = script.ok() ? CheckScript(*script, arguments, &diagnostics) : script.status();
  std::error_code error;
  if (!script.ok() && !arguments.positional().empty() &&
      std::filesystem::is_directory(arguments.positional()[0], error))
    status =
        status.WithNote(fmt::format("heddle check --compat {} checks all in it", arguments.positional()[0]));
  if (arguments.Has("json")) {
    PrintOutput(ToJson(status, diagnostics));
    return ExitCode(status);
  }
  if (status.ok()) PrintOutput(script->name + ": no errors\n");
  return Report(status);
}

constexpr Option kOptions[] = {
    {"compat", Option::Kind::kValue, "DIR", "check all scripts below a folder, and count what stops them"},
    {"memory", Option::Kind::kValue, "SIZE", "most memory of the process (default: what the machine has)"},
};

}  // namespace

const Verb kCheckVerb = {"check",
                         "find all errors of a script without running it",
                         "check SCRIPT.dml|-e CODE|-|--compat DIR [-args V... | -nvargs K=V...]",
                         JoinOptions({kOptions, ScriptOptions()}),
                         "heddle check train.dml",
                         Run,
                         /*takes_words=*/true};

}  // namespace heddle::cluster::cli
