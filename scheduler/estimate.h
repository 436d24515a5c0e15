// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/programs/plan.h"

namespace heddle::scheduler {

/// About how long one act of `task` takes on one rank, in nanoseconds, from the operator's cost on known
/// shapes (ops::CostOf) and the share of rows that the task computes; a built-in machine of 8 bytes and 4
/// operations a nanosecond, so rather too long than too short. kUnboundedCost for what reads or writes files;
/// 0 where nothing is computed or nothing is known. The runtime replaces it by what it measures.
int64_t EstimateNs(const Graph& graph, const Task& task);

}  // namespace heddle::scheduler
