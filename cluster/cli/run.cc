// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "cluster/cli/devices_option.h"
#include "cluster/cli/run_files.h"
#include "cluster/cli/run_script.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/spill_folder_option.h"
#include "cluster/cli/verb.h"
#include "engine/control/background_measurement.h"
#include "engine/session/limit_of_run.h"

namespace heddle::cluster::cli {
namespace {

int Run(const Arguments& arguments) {
  std::optional<engine::LimitOfRun> limit;  // Also of what is measured behind the run.
  engine::BackgroundMeasurement measurement;
  return RunScript(arguments, 1,
                   [&](const Program& program, const engine::SessionOptions& options,
                       const engine::RunSurroundings& surroundings) {
                     limit.emplace(options.memory_bytes);
                     engine::RunOutcome outcome = engine::RunLocally(program, options, surroundings);
                     if (outcome.status.ok()) measurement.StartBehind(outcome.statistics[0], options.threads);
                     return outcome;
                   });
}

}  // namespace

const Verb kRunVerb = {
    "run",
    "run a script on this machine",
    "run [OPTIONS] SCRIPT.dml|-e CODE|- [-args V... | -nvargs K=V...]",
    JoinOptions({RunFiles::Options(), kQuietOptions, kSpillFolderOptions, kDevicesOptions, RunOptions()}),
    "heddle run train.dml -nvargs X=data.csv model=w.csv",
    Run,
    /*takes_words=*/true};

}  // namespace heddle::cluster::cli
