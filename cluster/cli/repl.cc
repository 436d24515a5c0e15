// SPDX-License-Identifier: Apache-2.0
#include "cluster/repl/repl.h"

#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>

#include "cluster/cli/devices_option.h"
#include "cluster/cli/report.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/spill_folder_option.h"
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
    kSpillFolderOption,
    kDevicesOption,
    {"library", Kind::kValue, "DIR", "folder of functions written in DML; may be given again"},
    {"disable-pass", Kind::kValue, "NAME", "leave out a pass or rule of the compiler"},
    {"args", Kind::kRest, "V...", "values of $1, $2, ...; takes the rest of the line"},
    {"nvargs", Kind::kRest, "K=V...", "values of $K; takes the rest of the line"},
};

// The session of the command line; `print` shows what its statements print.
Result<std::unique_ptr<engine::InteractiveSession>> OpenSession(
    const Arguments& arguments, const std::function<void(std::string_view text)>& print) {
  if (arguments.positional().size() > 1)
    return Usage("two scripts, '{}' and '{}'; repl loads one at most", arguments.positional()[0],
                 arguments.positional()[1]);
  HEDDLE_ASSIGN_OR_RETURN(const auto parameters, ScriptParameters(arguments));
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Engine> engine, MakeEngine(arguments));
  engine::RunCallbacks callbacks;
  callbacks.print = print;
  callbacks.warn = [](std::string_view text) { std::fputs(EscapeForTerminal(text).c_str(), stderr); };
  return engine->NewSession(callbacks, parameters);
}

int Run(const Arguments& arguments) {
  const auto print = [](std::string_view text) { PrintOutput(text); };
  const Result<std::unique_ptr<engine::InteractiveSession>> opened = OpenSession(arguments, print);
  if (!opened.ok()) return Report(opened.status());
  engine::InteractiveSession& session = **opened;
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
