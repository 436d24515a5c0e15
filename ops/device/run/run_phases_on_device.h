// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "core/programs/graph.h"
#include "ops/base/kernel.h"
#include "ops/device/device.h"
#include "ops/device/run/queued_call.h"

// Operators of phases (core/programs/phased_operator.h) on a device: the launches of their members are queued
// one after the other, and what one leaves for the next stays in the memory of the device, scalars as
// matrices of one cell. The host reads flags and scalar results when all is done.
namespace heddle::ops {

class DeviceOperators;

/// Whether a node of a graph may be a member of an operator of phases that a device runs: OK, or
/// kUnimplemented with the reason. The device computes what scalars other members make of matrices, so those
/// that a member reads must be cells to it: no sizes or places.
Status CanRunInPhases(const Graph& graph, NodeId id);

/// What the members of a node whose members CanRunInPhases take of the memory of the device beside what the
/// node reads and makes, in bytes: what they leave for each other, and what each works with. All of it counts
/// at once: commands of all members are queued before the first is done, and hold what they read and write.
int64_t ScratchOfPhases(const Node& node, const DeviceDescription& device);

/// Queues the members, or the first of them where one takes many launches (QueuedCall::HasMore): what the
/// call names, and `results`, outlive the last. kUnimplemented as of each of them.
Result<std::unique_ptr<QueuedCall>> QueuePhases(DeviceOperators& operators, const KernelCall& call,
                                                DeviceQueue& queue, std::span<Value> results);

/// Queues an operator on scalars of which some are on the device: that of the node on matrices of one cell.
/// `value_of` has operands: such a matrix, or a scalar.
Result<Matrix> QueueCells(DeviceOperators& operators, const Graph& graph, NodeId id,
                          const std::function<const Value*(NodeId)>& value_of, KernelContext& context,
                          DeviceQueue& queue);

}  // namespace heddle::ops
