// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/programs/plan.h"
#include "ops/base/machine_constants.h"

namespace heddle::scheduler {

/// About how long one act of `task` takes on one rank, in nanoseconds, from the operator's cost on known
/// shapes (ops::CostOf) and the share of rows that the task computes. kUnboundedCost for what reads or writes
/// files; 0 where nothing is computed or nothing is known. The runtime replaces it by what it measures.
int64_t EstimateNs(const Graph& graph, const Task& task, const ops::MachineConstants& constants);

/// The same of the whole node on one rank, without starting it; 0 where files tell or nothing is known.
double NodeNs(const Graph& graph, const Node& node, const ops::MachineConstants& constants);
/// Of every node, with starting it.
std::vector<double> NodesNs(const Graph& graph, const ops::MachineConstants& constants);

}  // namespace heddle::scheduler
