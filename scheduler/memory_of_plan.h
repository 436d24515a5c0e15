// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/programs/plan.h"

namespace heddle::scheduler {

/// What a plan takes on one rank, in bytes. Entries of CSR matrices are in none of these: a plan does not
/// know how many there are.
struct MemoryOfPlan {
  /// Plan::pool_bytes.
  int64_t values = 0;
  /// InTransitOn(), both of it.
  int64_t in_transit = 0;
  /// About the most that an operator works with beside them: what it states (Operator::working_bytes), and
  /// payloads of reductions on their way (ops/reduction/reduction_tasks.h).
  int64_t working = 0;
  /// Of rows that the plan hands to the panel store: they are in memory while there is room, else in files.
  int64_t panels = 0;
};
/// `threads` compute on a rank.
MemoryOfPlan MemoryOn(const Plan& plan, int32_t rank, int threads);

/// What is held of panels on a rank beside the values of a plan, in bytes: by the panel store while it reads,
/// joins and writes them, and by operators that act once on panels.
struct InTransit {
  /// As much as the sizes of panels say.
  int64_t of_panels = 0;
  /// Pieces of about a megabyte, at most so many, whatever the plan: a plan that has room for the rest is not
  /// refused for them.
  int64_t fixed = 0;
};
InTransit InTransitOn(const Plan& plan, int32_t rank);

/// What is left of the memory for kernels beside the values of a plan, which work with `working` bytes: an
/// eighth, or 2 MiB of which blocks below 2 MiB take some that are free and fit nothing else, but no more
/// than a quarter; or `working`.
int64_t BytesForKernels(int64_t memory_bytes, int64_t working);

/// Which registers of a plan hold a handle to panels (core/values/row_panels.h), each with a bit.
std::vector<bool> HandlesOf(const Plan& plan);

/// What an operator that acts once on panels holds of their rows; 0 of other tasks.
int64_t HeldOfPanels(const Plan& plan, const Task& task);

/// The assignments that leave panels on some rank.
std::vector<NodeId> AssignsOfPanels(const Plan& plan);

}  // namespace heddle::scheduler
