// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "cluster/cli/arguments.h"
#include "engine/control/local_run.h"

namespace heddle::cluster::cli {

/// --quiet of the verbs that show progress.
inline constexpr Option kQuietOptions[] = {{"quiet", Option::Kind::kFlag, "", "show no progress", "q"}};

/// What `run` and `sim` share: reads and compiles the script, runs it by `execute`, prints explain,
/// statistics and the outcome. Returns the exit code.
using Execute =
    std::function<engine::RunOutcome(const Program& program, const engine::SessionOptions& options,
                                     const engine::RunSurroundings& surroundings)>;
int RunScript(const Arguments& arguments, int ranks, const Execute& execute);

/// -stats and --json of a finished run, on stderr.
void PrintStatistics(const Arguments& arguments, const std::vector<engine::SessionStatistics>& ranks);

}  // namespace heddle::cluster::cli
