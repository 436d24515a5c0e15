// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/programs/distribution.h"
#include "ops/base/machine_constants.h"

namespace heddle::scheduler {

/// What boxing a value from one distribution to another moves between ranks (runtime reference 3.3).
struct Transition {
  double sent_bytes = 0;     ///< By all ranks together.
  double slowest_bytes = 0;  ///< Sent or received by the rank with most of them.
  int messages = 0;          ///< One after the other.
};

/// Of a value of `bytes` bytes, as many in each row.
Transition TransitionOf(double bytes, const Distribution& from, const Distribution& to, int32_t ranks);

/// How long it takes.
double NanosecondsOf(const Transition& transition, const ops::MachineConstants& constants);

}  // namespace heddle::scheduler
