// SPDX-License-Identifier: Apache-2.0
// Verbs that this program starts itself, each with a socket to the process that started it
// (cluster/process/verb_process.h).
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "cluster/compiling/compile_script.h"
#include "cluster/executor/executor.h"

namespace heddle::cluster::cli {
namespace {

constexpr Option kOptions[] = {{"control-fd", Option::Kind::kValue, "N", ""}};

int RunStarted(const Arguments& arguments, std::string_view verb, std::string_view starters,
               int (*run)(int control_fd)) {
  const Result<int64_t> fd = arguments.Integer("control-fd", -1, 3, 1 << 20);
  if (!fd.ok()) return Report(fd.status());
  if (*fd < 0) return Report(Usage("'heddle {}' is started by {}, not by hand", verb, starters));
  return run(static_cast<int>(*fd));
}

int RunExecutorVerb(const Arguments& arguments) {
  return RunStarted(arguments, "executor", "'heddle sim' and 'heddle worker'", RunExecutor);
}

int RunCompilerVerb(const Arguments& arguments) {
  return RunStarted(arguments, "compiler", "'heddle master'", RunCompiler);
}

}  // namespace

const Verb kExecutorVerb = {.name = "executor",
                            .summary = "one session of one job",
                            .usage = "executor --control-fd N",
                            .options = JoinOptions({kOptions}),
                            .example = "",
                            .run = RunExecutorVerb,
                            .hidden = true};

const Verb kCompilerVerb = {.name = "compiler",
                            .summary = "compiles one script for a master",
                            .usage = "compiler --control-fd N",
                            .options = JoinOptions({kOptions}),
                            .example = "",
                            .run = RunCompilerVerb,
                            .hidden = true};

}  // namespace heddle::cluster::cli
