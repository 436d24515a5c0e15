// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/programs/distribution.h"
#include "core/programs/graph.h"
#include "ops/base/machine_constants.h"
#include "ops/base/split.h"

namespace heddle::scheduler {

/// Up to so many ranks a value goes from one to each in one step, since a step takes longer than a few
/// messages of one rank; beyond them by trees, so that no rank sends or receives more than the logarithm of
/// their number.
constexpr int32_t kMostDirectRanks = 4;
/// Larger values are gathered in one step on any number of ranks: a tree would copy them at every level.
constexpr int64_t kMostTreeBytes = int64_t{1} << 20;

/// Up to so many ranks each sends every other its part of a large value itself; more exchange halves, in as
/// many steps as the logarithm of their number.
constexpr int32_t kMostExchanged = 16;

/// In how many chunks a value of so many bytes goes from one rank to each: an even number, those of every
/// other chunk along another tree, so that a rank hands on the first while the next are on their way. 1: at
/// once.
int32_t ChunksOf(double bytes, int32_t ranks);

/// What boxing a value from one distribution to another moves between ranks (runtime reference 3.3).
struct Transition {
  double sent_bytes = 0;     ///< By all ranks together.
  double slowest_bytes = 0;  ///< Sent or received by the rank with most of them.
  int messages = 0;          ///< One after the other.
  double delay_bytes = 0;    ///< Which come before the last rank gets its first.
};

using ops::BytesToMove;

/// Of a value of `bytes` bytes, as many in each row.
Transition TransitionOf(double bytes, const Distribution& from, const Distribution& to, int32_t ranks);

/// Of the lists of tree nodes that ranks have of a reduction, those of rank r nodes[r] nodes of `bytes`
/// bytes: to the rank that gets all of them, or each some units of all (ops/base/stages.h).
Transition ListsToOne(double bytes, const std::vector<int>& nodes, int32_t rank);
Transition ListsInParts(double bytes, const std::vector<int>& nodes);
/// How many nodes the list of each rank has that reads the rows of `cuts`, which are at granules.
std::vector<int> NodesOfLists(const Split& cuts);

/// How long it takes.
double NanosecondsOf(const Transition& transition, const ops::MachineConstants& constants);

}  // namespace heddle::scheduler
