// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/programs/plan.h"

namespace heddle::actor {

struct RandomPlanOptions {
  int most_tasks = 40;
  int most_ranks = 4;
  int most_streams = 3;
  int64_t most_rate = 4;
  int64_t most_pieces = 16;  ///< Of any register in one run.
};

/// A plan whose rates fit and whose data and control edges make a DAG, over 1..most_ranks ranks; every
/// register has one slot. Same seed, same plan.
Plan RandomPlan(uint64_t seed, const RandomPlanOptions& options = {});

}  // namespace heddle::actor
