// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/programs/plan.h"

namespace heddle::actor {

/// What may go wrong once in the history of a model.
enum class Trouble : uint8_t {
  kNone,
  kCancel,
  kFailingKernel,
  kLostRank,
  kTwice  ///< A peer says something twice, which breaks the protocol: the run has to end with that error.
};

/// A small plan, or one for each lane, and what may happen to it.
struct ModelInstance {
  std::string name;
  std::vector<std::shared_ptr<const Plan>> plans;  ///< By lane.
  int runs = 1;                                    ///< One after the other, of each lane.
  bool launches = false;                           ///< Any kernel may be launched on the device.
  bool acks_wait = false;  ///< One thread serves each rank, and its ACKs wait for other messages.
  Trouble trouble = Trouble::kNone;
  bool must_stall = false;  ///< SPIN has to find that it stops before its end.
  std::string breaks_by;    ///< What SPIN has to find that must not happen; empty: it must find nothing.
  bool is_quick = true;     ///< Part of every run of the tests; else of tests/models/all alone.
};

std::vector<ModelInstance> ModelInstances();

}  // namespace heddle::actor
