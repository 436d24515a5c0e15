// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/chaos/chaos.h"
#include "cluster/executor/launch.h"
#include "engine/control/local_run.h"

namespace heddle::cluster {

/// RunOnLocalProcesses, while workers are killed and stopped and messages are lost. An attempt that fails by
/// that is made again, from the last checkpoint or the beginning, until one gets through: what an earlier one
/// has printed behind that is not printed again, and what it has written is put back first, so that output
/// and files are those of a run that nothing disturbed. Two attempts that ended without a result and without
/// a checkpoint make faults half as frequent for the next one, and so on, so that the run ends.
///
/// `processes` names no attempt. Where messages are lost executors share no memory: what goes through that
/// cannot be lost. `report` says what happened; valid whatever the outcome.
engine::RunOutcome RunWithChaos(const Program& program, const engine::SessionOptions& options,
                                const engine::RunSurroundings& surroundings, LocalProcesses processes,
                                const Chaos& chaos, ChaosReport* report);

}  // namespace heddle::cluster
