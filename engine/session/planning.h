// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/fuse/fuse.h"
#include "engine/variables/session_options.h"
#include "scheduler/schedule.h"

namespace heddle::engine {

/// What fusion plans with in a session of these options: all but what depends on its variables. Error:
/// kInvalidArgument for a mode of fusion that does not exist.
Result<compiler::FuseOptions> FuseOptionsOf(const SessionOptions& session);

/// What a rank may hold in a session of these options: what the user said, or what it has; 0: no limit is
/// known.
int64_t MemoryOf(const SessionOptions& session);

/// How many bytes of panels that are kept a rank leaves in memory while a plan runs that needs `planned`,
/// whose operators work with `working` beside that, and beside which `others` are in use.
int64_t RoomOfPanels(const SessionOptions& session, int64_t planned, int64_t working, int64_t others);

/// How many bytes of the memory of a device are for values.
int64_t RoomOnDevice(int64_t memory_bytes);

/// The same of the device of a session; 0 where it has none.
int64_t RoomOnDevice(const SessionOptions& session);

/// What placement plans with in a session of these options: all but how its variables lie.
scheduler::ScheduleOptions ScheduleOptionsOf(const SessionOptions& session);

}  // namespace heddle::engine
