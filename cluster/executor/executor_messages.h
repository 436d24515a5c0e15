// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/executor/executor_process.h"
#include "core/status.h"
#include "engine/session/statistics.h"

// What a launcher and its executor say to each other: one JSON object a line. Text may hold any bytes; each
// byte travels as the character of that number.
namespace heddle::cluster {

/// Launcher to executor: exactly one of these is set.
struct LauncherMessage {
  std::optional<ExecutorStart> start;
  std::optional<std::vector<ExecutorPeer>> peers;
  std::optional<Status> cancel;
  std::optional<ExecutorGrant> grant;
  std::optional<CheckpointOrder> checkpoint;
};
std::string ToLine(const LauncherMessage& message);
Result<LauncherMessage> ParseLauncherMessage(const std::string& line);

struct ExecutorReady {
  std::string endpoint;
  std::string certificate;  ///< That its peers must see at the endpoint; "" without TLS.
};

/// Executor to launcher: one of these is set, or none: a sign of life.
struct ExecutorMessage {
  std::optional<ExecutorReady> ready;
  std::optional<std::string> output;    ///< standard output of the script
  std::optional<std::string> plan;      ///< text of a plan that is about to run (ExecutorStart::show_plans)
  std::optional<std::string> progress;  ///< what the run is at (ExecutorStart::shows_progress)
  std::optional<std::string> record;    ///< of the run that is over, before `done`
  std::optional<ExecutorDone> done;
  std::optional<ExecutorCommit> commit;
  std::optional<engine::WrittenCheckpoint> checkpoint;
  std::optional<std::string> hidden;  ///< path of what is left if it is killed, before it makes that
  std::optional<std::string> gone;    ///< such a path of which nothing is left
};
std::string ToLine(const ExecutorMessage& message);
Result<ExecutorMessage> ParseExecutorMessage(const std::string& line);

}  // namespace heddle::cluster
