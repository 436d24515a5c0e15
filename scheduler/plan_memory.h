// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/programs/plan.h"

namespace heddle::scheduler {

/// Finds which registers of a rank may take the memory of others, one after the other, and fills
/// Plan::peak_bytes and Plan::pool_bytes (runtime reference 3.9).
///
/// A register is alive from its producer to its last reader on the rank, in plan order; to the end where
/// another rank or a live-out reads it, and all the time if it is a live-in. All registers are laid out in
/// one block, those in the memory of a device in one of its own, and two of them share a place only if all
/// readers of the first act before the producer of the second: because the plan's edges say so already or,
/// for registers of at least 64 KiB, because a guard edge (a control register) is added that says so. So no
/// interleaving of acts needs more than the block. The places are forgotten then: matrix memory comes from
/// the pool of the process (core/memory/block_pool.h).
///
/// Needs: slots. Keeps: every edge and its slots; added edges follow plan order, so that a live plan stays
/// live.
/// Cost: O(registers^2) a rank, with bit sets over its tasks for the order.
void PlanMemory(Plan* plan);

/// What registers in the memory of a device take at most, as Plan::peak_bytes of those of the host: of the
/// rank with the most. Needs: PlanMemory.
int64_t PeakOnDevice(const Plan& plan, Device device);

/// Plan::pool_bytes where each value whose size only the run tells is as large as it may be: with as many
/// rows and columns as the largest operand, of rbind and cbind as all of them, and not smaller than an
/// operand.
std::vector<int64_t> MostPoolBytes(const Plan& plan);

/// What a value of that type and size takes of the pool of blocks, in bytes; a frame has a block a column.
int64_t BlockBytesOf(const ValueInfo& info);

/// kResourceExhausted when a rank needs more than memory_bytes (0: as many as can be counted), naming the
/// largest register's operator, or the operator whose working memory (Operator::working_bytes) does not fit
/// beside what it reads and makes.
Status CheckMemory(const Plan& plan, int64_t memory_bytes);

/// What the operator of a task works with beside what it reads and makes, in bytes
/// (Operator::working_bytes).
double WorkingBytesOf(const Plan& plan, const Task& task);

}  // namespace heddle::scheduler
