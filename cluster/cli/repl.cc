// SPDX-License-Identifier: Apache-2.0
#include "cluster/repl/repl.h"

#include <unistd.h>

#include <cstdio>

#include "cluster/cli/report.h"
#include "cluster/cli/run_script.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"
#include "cluster/repl/history.h"
#include "core/text/utf8.h"
#include "core/version.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;
constexpr Option kOptions[] = {
    {"seed", Kind::kValue, "N", "of rand() without a seed"},
    {"fusion-strict", Kind::kFlag, "", "no machine code for a fused operator is an error"},
    {"library", Kind::kValue, "DIR", "folder of functions written in DML; may be given again"},
    {"disable-pass", Kind::kValue, "NAME", "leave out a pass or rule of the compiler"},
    {"args", Kind::kRest, "V...", "values of $1, $2, ...; takes the rest of the line"},
    {"nvargs", Kind::kRest, "K=V...", "values of $K; takes the rest of the line"},
};

Result<engine::InteractiveSession::Options> ReadOptions(const Arguments& arguments,
                                                        compiler::SourceLoader* loader) {
  engine::InteractiveSession::Options options;
  ScriptInput script;
  script.name = engine::InteractiveSession::kScript;
  HEDDLE_ASSIGN_OR_RETURN(script.parameters, ScriptParameters(arguments));
  HEDDLE_ASSIGN_OR_RETURN(options.compile, ReadCompileOptions(script, arguments, loader));
  HEDDLE_ASSIGN_OR_RETURN(options.session, ReadSessionOptions(arguments));
  if (arguments.positional().size() > 1)
    return Usage("two scripts, '{}' and '{}'; repl loads one at most", arguments.positional()[0],
                 arguments.positional()[1]);
  options.directory = WorkingDirectory();
  options.print = [](std::string_view text) { PrintOutput(text); };
  options.warn = [](std::string_view text) { std::fputs(EscapeForTerminal(text).c_str(), stderr); };
  return options;
}

int Run(const Arguments& arguments) {
  compiler::FileSourceLoader loader(WorkingDirectory(), engine::RootsOfRun());
  Result<engine::InteractiveSession::Options> options = ReadOptions(arguments, &loader);
  if (!options.ok()) return Report(options.status());
  LimitMemory(options->session.memory_bytes, options->session.ranks);
  if (Status status = UseCpu(options->session); !status.ok()) return Report(status);
  const auto print = options->print;
  engine::InteractiveSession session(*std::move(options));
  const bool is_terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  std::unique_ptr<LineSource> lines;
  if (is_terminal) {
    print(fmt::format("heddle {}; :help lists the commands\n", kVersion));
    lines = MakeEditedLines(History::DefaultPath(),
                            [&session](std::string_view text) { return Complete(text, session); });
    if (lines == nullptr) lines = MakePlainLines();
  } else {
    lines = MakePipeLines();
  }
  Repl repl(&session, lines.get(), {print, Report});
  if (!arguments.positional().empty()) repl.Load(arguments.positional()[0]);
  return repl.Run();
}

}  // namespace

const Verb kReplVerb = {"repl",
                        "run statements one by one as they are entered",
                        "repl [OPTIONS] [SCRIPT.dml] [-args V... | -nvargs K=V...]",
                        JoinOptions({PlanOptions(), kOptions}),
                        "heddle repl --memory 4G",
                        Run,
                        /*takes_words=*/true};

}  // namespace heddle::cluster::cli
