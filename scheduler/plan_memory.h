// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/programs/plan.h"

namespace heddle::scheduler {

/// Gives every register with bytes its place in the block of its rank (Register::offset) and fills
/// Plan::peak_bytes with the blocks' sizes (runtime reference 3.9).
///
/// A register is alive from its producer to its last reader on the rank, in plan order; to the end where
/// another rank or a live-out reads it, and all the time if it is a live-in. Two registers share a place only
/// if all readers of the first act before the producer of the second: because the plan's edges say so already
/// or, for registers of at least 64 KiB, because a guard edge (a control register) is added that says so. So
/// no interleaving of acts needs more than the block.
///
/// Needs: slots. Keeps: every edge and its slots; added edges follow plan order, so that a live plan stays
/// live.
/// Cost: O(registers^2) a rank, with bit sets over its tasks for the order.
void PlanMemory(Plan* plan);

/// kResourceExhausted when a rank needs more than memory_bytes (0: as many as can be counted), naming the
/// largest register's operator, or the operator whose working memory (Operator::working_bytes) does not fit
/// beside what it reads and makes.
Status CheckMemory(const Plan& plan, int64_t memory_bytes);

/// What the operator of a task works with beside what it reads and makes, in bytes
/// (Operator::working_bytes).
double WorkingBytesOf(const Plan& plan, const Task& task);

}  // namespace heddle::scheduler
