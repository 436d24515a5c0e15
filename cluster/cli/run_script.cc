// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/run_script.h"

#include <cstdio>

#include "cluster/cli/report.h"
#include "cluster/cli/run_files.h"
#include "cluster/cli/script_input.h"
#include "cluster/process/interrupt.h"
#include "cluster/progress/shown_progress.h"
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

namespace {

void PrintAside(ShownProgress& progress, std::string_view text) {
  progress.Aside([&] { return std::fputs(fmt::format("{}\n", text).c_str(), stderr); });
}

}  // namespace

int RunScript(const Arguments& arguments, int ranks, const Execute& execute) {
  if (const Status named = RunFiles::CheckNames(arguments); !named.ok())
    return ReportOutcome(arguments, named);
  const Result<engine::Script> script = ReadScript(arguments);
  if (!script.ok()) return ReportOutcome(arguments, script.status());
  const Result<RunFiles> files = RunFiles::Read(arguments, *script);
  if (!files.ok()) return ReportOutcome(arguments, files.status());
  const Result<std::unique_ptr<engine::Engine>> engine = MakeEngine(arguments, ranks);
  if (!engine.ok()) return ReportOutcome(arguments, engine.status());
  engine::Cancellation cancellation;
  ShownProgress progress(/*is_quiet=*/arguments.Has("quiet") || arguments.Has("json"));
  // What a run has recorded until then is worth a wait; a second signal ends it.
  constexpr std::chrono::milliseconds kLateWithFiles{5000};
  InterruptGuard guard(
      cancellation, /*survives=*/false,
      [&] {
        progress.TryHide();
        EndProcess(arguments, cancellation.why());
      },
      files->IsAskedFor() ? kLateWithFiles : InterruptGuard::kLate);
  compiler::Diagnostics diagnostics;
  const Result<Program> program = Compile(**engine, *script, arguments, &diagnostics);
  if (!program.ok()) return ReportOutcome(arguments, program.status());

  engine::RunSurroundings surroundings;
  surroundings.directory = WorkingDirectory();
  surroundings.print = [&](std::string_view text) {
    if (!progress.Aside([&] { return PrintOutput(text); })) cancellation.Request(OutputStatus());
  };
  surroundings.cancellation = &cancellation;
  compiler::Recompilations recompilations;
  if (arguments.Value("explain").value_or("").starts_with("recompile")) {
    surroundings.show_plan = [&](std::string_view text) {
      const Result<std::string> line = recompilations.Describe(text);
      PrintAside(progress, line.ok() ? *line : line.status().ToString());
    };
  } else if (arguments.Has("explain")) {
    std::fputs(compiler::ExplainProgram(*program).c_str(), stderr);
    surroundings.show_plan = [&](std::string_view text) { PrintAside(progress, text); };
  }
  progress.Begin(&surroundings);
  const engine::RunOutcome outcome = execute(*program, (*engine)->options().session, surroundings);
  progress.End();
  PrintStatistics(arguments, outcome.statistics);
  Status status = outcome.status.ok() ? OutputStatus() : outcome.status;
  if (files->IsAskedFor()) {
    const Status written = files->Write((*engine)->RecordOf(*script, outcome));
    // A run that went well has not, without what was asked for.
    if (status.ok()) status = written;
  }
  return ReportOutcome(arguments, status);
}

}  // namespace heddle::cluster::cli
