// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <optional>

#include "cluster/chaos/chaos_run.h"
#include "cluster/chaos/parse_chaos.h"
#include "cluster/cli/devices_option.h"
#include "cluster/cli/report.h"
#include "cluster/cli/run_files.h"
#include "cluster/cli/run_script.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/shared_memory_option.h"
#include "cluster/cli/spill_folder_option.h"
#include "cluster/cli/verb.h"
#include "cluster/executor/launch.h"

namespace heddle::cluster::cli {
namespace {

constexpr Option kChaosOption = {
    "chaos", Option::Kind::kOptionalValue, "",
    "kill and stop workers, lose messages: kill=2s,drop=1%,pause=500ms,seed=7 (docs/chaos.md)"};

constexpr Option kOptions[] = {
    {"workers", Option::Kind::kValue, "N", "number of worker processes (required)"},
    kChaosOption,
    kNoSharedMemoryOption,
    kSpillFolderOption};

int Run(const Arguments& arguments) {
  if (!arguments.Has("workers"))
    return ReportOutcome(arguments,
                         Usage("sim needs the number of workers: heddle sim --workers 2 SCRIPT.dml"));
  const Result<int> workers = ReadWorkers(arguments);
  if (!workers.ok()) return ReportOutcome(arguments, workers.status());
  const LocalProcesses processes = {.shares_memory = !arguments.Has(kNoSharedMemoryOption.name)};
  if (!arguments.Has(kChaosOption.name))
    return RunScript(arguments, *workers,
                     [&](const Program& program, const engine::SessionOptions& options,
                         const engine::RunSurroundings& surroundings) {
                       return RunOnLocalProcesses(program, options, surroundings, processes);
                     });
  const Result<Chaos> chaos = ParseChaos(arguments.Value(kChaosOption.name).value_or(""));
  if (!chaos.ok()) return ReportOutcome(arguments, chaos.status());
  ChaosReport report;
  const int code =
      RunScript(arguments, *workers,
                [&](const Program& program, const engine::SessionOptions& options,
                    const engine::RunSurroundings& surroundings) {
                  return RunWithChaos(program, options, surroundings, processes, *chaos, &report);
                });
  if (report.attempts > 0)
    std::fputs(arguments.Has("json") ? (report.ToJson() + "\n").c_str() : report.ToText().c_str(), stderr);
  return code;
}

}  // namespace

const Verb kSimVerb = {
    "sim",
    "run a script on worker processes of this machine, as on a cluster",
    "sim --workers N [OPTIONS] SCRIPT.dml|-e CODE|- [-args V... | -nvargs K=V...]",
    JoinOptions({kOptions, RunFiles::Options(), kQuietOptions, kDevicesOptions, RunOptions()}),
    "heddle sim --workers 4 train.dml -nvargs X=data.csv model=w.csv",
    Run,
    /*takes_words=*/true};

}  // namespace heddle::cluster::cli
