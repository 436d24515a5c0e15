// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/programs/distribution.h"
#include "core/programs/graph.h"
#include "scheduler/schedule.h"

// Copies of variables in other distributions, which plans leave for those behind them (docs/distribution.md).
namespace heddle::scheduler {

/// Whether a copy of the variable is there in that distribution.
bool HasCopy(const ScheduleOptions& options, const std::string& variable, const Distribution& distribution);
/// About how many bytes the value of a node has (ops::BytesToMove), which of variables the options may know
/// better.
double BytesOf(const Node& node, const ScheduleOptions& options);
/// How many of `bytes` the rank has that has most of a value which is there.
double HeldBytes(double bytes, const Distribution& where, int32_t ranks);
/// Which of the distributions `made`, into which a plan has brought variables that are at `home`, it leaves
/// as copies: those that came over a link, as long as there is room for them.
struct MovedVariable {
  NodeId node = kNoNode;
  Distribution home, made;
};
std::vector<MovedVariable> KeptOf(const Graph& graph, const ScheduleOptions& options,
                                  std::vector<MovedVariable> moved);

}  // namespace heddle::scheduler
