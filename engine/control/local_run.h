// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/session/cancellation.h"
#include "engine/session/session.h"
#include "ops/io/files/file_roots.h"

namespace heddle::engine {

/// What the script of a user may use who runs it: all that the user may, but for what other users' Heddle
/// keeps, and no changes to what one's own keeps.
ops::FileRoots RootsOfRun();

/// How a run went: what `run`, `sim` and an executor's launcher report.
struct RunOutcome {
  Status status;
  std::vector<SessionStatistics> statistics;  ///< By rank; those that reported.
  std::vector<RankRecord> records;            ///< Likewise, with SessionOptions::recorded_events.
};

/// Where a run takes its files from and puts its output.
struct RunSurroundings {
  std::string directory;                             ///< Relative paths of the script; absolute itself.
  std::function<void(std::string_view text)> print;  ///< Standard output of the script, in order.
  Cancellation* cancellation = nullptr;              ///< nullptr: cannot be cancelled.
  int64_t silence_ms = 10'000;  ///< An executor without a sign of life for so long is stuck.
  std::function<void(std::string_view text)>
      show_plan;  ///< Called with every plan before it runs; may be empty.
  /// Called with what worker 0 is at, as JSON, of a run in other processes; may be empty.
  std::function<void(const std::string& json)> tell_progress;
  ProgressBoard* progress = nullptr;      ///< Told what the run is at; nullptr: nobody looks. Outlives it.
  SessionVariables* variables = nullptr;  ///< As of SessionEnvironment; of a run in this process.
  ops::PanelStore* panels = nullptr;      ///< Likewise.
};

/// `heddle run`: one session of one rank in the calling process, without gRPC. options.rank and .ranks are
/// ignored.
RunOutcome RunLocally(const Program& program, SessionOptions options, const RunSurroundings& surroundings);

}  // namespace heddle::engine
