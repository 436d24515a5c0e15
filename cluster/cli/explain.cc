// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "cluster/cli/devices_option.h"
#include "cluster/cli/report.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"

namespace heddle::cluster::cli {
namespace {

constexpr Option kOptions[] = {
    {"level", Option::Kind::kValue, "STAGE",
     "ast, a stage of the compiler, program (default), recursion, structure, all, fusion, cost, codegen, "
     "distribution, placement, memory or compression"},
    {"workers", Option::Kind::kValue, "N", "workers that plans are for, as sim (default 1)"},
    {"links", Option::Kind::kValue, "US,GB",
     "microseconds of a message and GB/s between workers, as -stats tells (default 50,1)"}};

Result<std::string> ExplainScript(const Arguments& arguments) {
  HEDDLE_ASSIGN_OR_RETURN(const engine::Script script, ReadScript(arguments));
  HEDDLE_ASSIGN_OR_RETURN(const int workers, ReadWorkers(arguments));
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Engine> engine, MakeEngine(arguments, workers));
  return engine->Explain(script, arguments.Value("level").value_or("program"));
}

int Run(const Arguments& arguments) {
  const Result<std::string> text = ExplainScript(arguments);
  if (!text.ok()) return ReportOutcome(arguments, text.status());
  if (arguments.Has("json"))
    PrintOutput(
        nlohmann::json{{"text", *text}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
        "\n");
  else
    PrintOutput(*text);
  return 0;
}

}  // namespace

const Verb kExplainVerb = {
    "explain",
    "show what the compiler makes of a script, stage by stage; runs nothing",
    "explain [--level STAGE] [OPTIONS] SCRIPT.dml|-e CODE|- [-args V... | -nvargs K=V...]",
    JoinOptions({kOptions, kDevicesOptions, PlanOptions(), ScriptOptions()}),
    "heddle explain --level all train.dml -nvargs X=data.csv",
    Run,
    /*takes_words=*/true};

}  // namespace heddle::cluster::cli
