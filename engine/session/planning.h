// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/fuse/fuse.h"
#include "engine/variables/session_options.h"
#include "scheduler/schedule.h"

namespace heddle::engine {

/// What fusion plans with in a session of these options: all but what depends on its variables. Error:
/// kInvalidArgument for a mode of fusion that does not exist.
Result<compiler::FuseOptions> FuseOptionsOf(const SessionOptions& session);

/// What placement plans with in a session of these options: all but how its variables lie.
scheduler::ScheduleOptions ScheduleOptionsOf(const SessionOptions& session);

}  // namespace heddle::engine
