// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/run_script.h"

#include <cstdio>

#include "cluster/cli/report.h"
#include "cluster/cli/script_input.h"
#include "cluster/process/interrupt.h"
#include "compiler/explain/explain.h"
#include "compiler/explain/recompilations.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {

void PrintStatistics(const Arguments& arguments, const std::vector<engine::SessionStatistics>& ranks) {
  if (!arguments.Has("stats")) return;
  if (arguments.Has("json")) {
    for (const engine::SessionStatistics& rank : ranks) std::fputs((ToJson(rank) + "\n").c_str(), stderr);
    return;
  }
  const Result<int64_t> most = arguments.Integer("stats", 20, 1, 1000);
  std::fputs(EscapeForTerminal(ToText(ranks, most.ok() ? static_cast<int>(*most) : 20)).c_str(), stderr);
}

int RunScript(const Arguments& arguments, int ranks, const Execute& execute) {
  const Result<engine::Script> script = ReadScript(arguments);
  if (!script.ok()) return ReportOutcome(arguments, script.status());
  const Result<std::unique_ptr<engine::Engine>> engine = MakeEngine(arguments, ranks);
  if (!engine.ok()) return ReportOutcome(arguments, engine.status());
  engine::Cancellation cancellation;
  InterruptGuard guard(cancellation, /*survives=*/false, [&] { EndProcess(arguments, cancellation.why()); });
  compiler::Diagnostics diagnostics;
  const Result<Program> program = Compile(**engine, *script, arguments, &diagnostics);
  if (!program.ok()) return ReportOutcome(arguments, program.status());

  engine::RunSurroundings surroundings;
  surroundings.directory = WorkingDirectory();
  surroundings.print = [&cancellation](std::string_view text) {
    if (!PrintOutput(text)) cancellation.Request(OutputStatus());
  };
  surroundings.cancellation = &cancellation;
  compiler::Recompilations recompilations;
  if (arguments.Value("explain").value_or("").starts_with("recompile")) {
    surroundings.show_plan = [&recompilations](std::string_view text) {
      const Result<std::string> line = recompilations.Describe(text);
      std::fputs(fmt::format("{}\n", line.ok() ? *line : line.status().ToString()).c_str(), stderr);
    };
  } else if (arguments.Has("explain")) {
    std::fputs(compiler::ExplainProgram(*program).c_str(), stderr);
    surroundings.show_plan = [](std::string_view text) {
      std::fputs(fmt::format("{}\n", text).c_str(), stderr);
    };
  }
  const engine::RunOutcome outcome = execute(*program, (*engine)->options().session, surroundings);
  PrintStatistics(arguments, outcome.statistics);
  return ReportOutcome(arguments, outcome.status.ok() ? OutputStatus() : outcome.status);
}

}  // namespace heddle::cluster::cli
