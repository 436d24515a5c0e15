// SPDX-License-Identifier: Apache-2.0
#include "compiler/explain/explain.h"

#include <nlohmann/json.hpp>

#include "cluster/cli/report.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"
#include "engine/control/local_run.h"
#include "engine/session/planning.h"
#include "ops/io/files/files.h"

namespace heddle::cluster::cli {
namespace {

constexpr Option kOptions[] = {
    {"level", Option::Kind::kValue, "STAGE",
     "ast, a stage of the compiler, program (default), recursion, all, fusion, cost or codegen"},
    {"workers", Option::Kind::kValue, "N", "workers that fusion plans for, as sim (default 1)"}};

Result<std::string> ExplainScript(const Arguments& arguments) {
  HEDDLE_ASSIGN_OR_RETURN(const ScriptInput script, ReadScript(arguments));
  compiler::FileSourceLoader loader(WorkingDirectory(), engine::RootsOfRun());
  HEDDLE_ASSIGN_OR_RETURN(const compiler::CompileOptions options,
                          ReadCompileOptions(script, arguments, &loader));
  compiler::Diagnostics diagnostics;
  HEDDLE_ASSIGN_OR_RETURN(engine::SessionOptions session, ReadSessionOptions(arguments));
  HEDDLE_ASSIGN_OR_RETURN(session.ranks, ReadWorkers(arguments));
  HEDDLE_RETURN_IF_ERROR(UseCpu(session));
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(WorkingDirectory(), nullptr, engine::RootsOfRun());
  HEDDLE_ASSIGN_OR_RETURN(compiler::FuseOptions fuse, engine::FuseOptionsOf(session));
  return compiler::Explain(script.text, options, arguments.Value("level").value_or("program"), &diagnostics,
                           {std::move(fuse), session.element_type, files.get()});
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
    JoinOptions({kOptions, PlanOptions(), ScriptOptions()}),
    "heddle explain --level all train.dml -nvargs X=data.csv",
    Run,
    /*takes_words=*/true};

}  // namespace heddle::cluster::cli
