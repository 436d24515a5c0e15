// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/control/local_run.h"

namespace heddle::cluster {

/// `heddle sim --workers N`: options.ranks executor processes on this machine, with gRPC over local sockets
/// between them. Returns when all of them are gone, whatever happened; nothing of them is left behind. A died
/// executor ends the run: kUnavailable "worker 2 (pid 1234) was killed by signal 9". `binary`: program to
/// start as executor; empty: this one. `shares_memory`: as of ExecutorStart.
engine::RunOutcome RunOnLocalProcesses(const Program& program, const engine::SessionOptions& options,
                                       const engine::RunSurroundings& surroundings,
                                       const std::string& binary = "", bool shares_memory = true);

}  // namespace heddle::cluster
