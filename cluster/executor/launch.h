// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cluster/executor/executor_process.h"
#include "engine/control/local_run.h"

namespace heddle::cluster {

/// One of several attempts at a run, for who makes them (cluster/chaos). Functions may be empty.
struct LocalAttempt {
  int number = 1;
  /// All processes have been started; by rank. They live until `ends` returns.
  std::function<void(const std::vector<ExecutorProcess*>& processes)> started;
  std::function<void()> ends;
  /// The address under which rank `caller` finds rank `target`, which listens at `endpoint`.
  std::function<Result<std::string>(size_t caller, size_t target, const std::string& endpoint)> route;
  /// Asked before an executor changes the file `path`, as the script names it. One at a time. Not Ok: it is
  /// not changed, and the attempt fails with that.
  std::function<Status(size_t rank, const std::string& path)> may_change;
  ExecutorCheckpoints checkpoints;  ///< Of all executors.
  /// A rank has written its part of a checkpoint, or could not. One call at a time for each rank, and before
  /// it asks for a change that comes behind.
  std::function<void(size_t rank, const engine::WrittenCheckpoint& written)> wrote;
};

struct LocalProcesses {
  std::string binary;                     ///< Program to start as executor; empty: this one.
  bool shares_memory = true;              ///< As of ExecutorStart.
  const LocalAttempt* attempt = nullptr;  ///< nullptr: the only one.
};

/// `heddle sim --workers N`: options.ranks executor processes on this machine, with gRPC over local sockets
/// between them. Returns when all of them are gone, whatever happened; nothing of them is left behind. A died
/// executor ends the run: kUnavailable "worker 2 (pid 1234) was killed by signal 9".
engine::RunOutcome RunOnLocalProcesses(const Program& program, const engine::SessionOptions& options,
                                       const engine::RunSurroundings& surroundings,
                                       const LocalProcesses& processes = {});

}  // namespace heddle::cluster
