// SPDX-License-Identifier: Apache-2.0
#include "engine/session/planning.h"

#include "ops/base/machine_constants.h"
#include "ops/fused/fused.h"

namespace heddle::engine {

Result<compiler::FuseOptions> FuseOptionsOf(const SessionOptions& session) {
  compiler::FuseOptions options;
  HEDDLE_RETURN_IF_ERROR(compiler::SetMode(session.fusion, &options));
  options.memory_budget = session.memory_bytes;
  options.constants = session.constants;
  options.threads = session.threads;
  options.ranks = session.ranks;
  options.min_distributed_bytes = session.min_distributed_bytes;
  options.can_run = ops::CanRunFused;
  return options;
}

scheduler::ScheduleOptions ScheduleOptionsOf(const SessionOptions& session) {
  scheduler::ScheduleOptions options;
  options.ranks = session.ranks;
  options.min_distributed_bytes = session.min_distributed_bytes;
  options.memory_bytes = session.memory_bytes;
  options.panel_bytes = session.panel_bytes;
  options.constants = ops::OrBuiltIn(session.constants, session.threads);
  return options;
}

}  // namespace heddle::engine
