// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/base/options.h"
#include "core/status.h"
#include "engine/session/statistics.h"

namespace heddle::bench {

/// One run of a script in processes of its own, as users run it.
struct HeddleRun {
  std::string output;                            ///< What the script printed.
  std::vector<engine::SessionStatistics> ranks;  ///< At least one.
};
/// Runs the `heddle` beside this program with these words, quoted for a shell; kInternal, with all that it
/// said, where it fails. It is asked for its statistics.
Result<HeddleRun> RunHeddle(const std::string& words);

double Seconds(int64_t nanoseconds);
/// Time of a rank that no plan changes: drawing the data.
double SecondsOfDrawing(const engine::SessionStatistics& statistics);

/// Whole scripts with each --fusion, in turns, by the `heddle` beside this program: seconds without the time
/// that draws the data, bytes that operators moved, and how much faster than unfused that is. Predicted: what
/// the bytes saved take at the read probe. Every mode must print the same.
int RunScripts(const BenchOptions& options, const std::vector<std::string>& files);

/// What choosing fused operators takes in a whole run of each script, the best round; X=options.data is its
/// argument.
int RunOptimizer(const BenchOptions& options, const std::vector<std::string>& files);

}  // namespace heddle::bench
