// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

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

/// What boxing a value from one distribution to another moves between ranks (runtime reference 3.3).
struct Transition {
  double sent_bytes = 0;     ///< By all ranks together.
  double slowest_bytes = 0;  ///< Sent or received by the rank with most of them.
  int messages = 0;          ///< One after the other.
};

using ops::BytesToMove;

/// Of a value of `bytes` bytes, as many in each row.
Transition TransitionOf(double bytes, const Distribution& from, const Distribution& to, int32_t ranks);

/// How long it takes.
double NanosecondsOf(const Transition& transition, const ops::MachineConstants& constants);

}  // namespace heddle::scheduler
