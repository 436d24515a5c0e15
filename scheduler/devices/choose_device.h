// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/programs/graph.h"
#include "core/status.h"
#include "scheduler/devices/device_options.h"

namespace heddle::scheduler {

/// Which nodes of a graph, all shapes known, run on the device: by DeviceOptions::rule, of those that it can
/// run. By cost: the cheapest division of the whole graph, a copy counted once a value and direction
/// (a minimum cut, as H. Stone, "Multiprocessor scheduling with the aid of network flow algorithms", 1977,
/// with a further node for each value that several read). `host_ns`: how long each node takes on the
/// processor of a rank. Unless values are kept there, each operator copies what it reads and makes. A kernel
/// that has to be compiled first costs that once, for all operators of the graph that share it and all runs
/// of the plan.
std::vector<bool> ChooseDevice(const Graph& graph, const std::vector<double>& host_ns, int32_t ranks,
                               bool keeps_values, const DeviceOptions& options);

/// Whether the device can run the node, with all it reads and makes in its memory where values are kept
/// there: OK, or kUnimplemented with the reason.
Status CanRunOn(const Graph& graph, NodeId id, int32_t ranks, bool keeps_values,
                const DeviceOptions& options);

/// How long the kernels take to compile that the node still needs, in nanoseconds a run of the plan.
double CompileNs(const Graph& graph, const Node& node, const DeviceOptions& options);

/// About how long the device takes for a node, in nanoseconds, its inputs and results in its memory.
double DeviceNs(const Graph& graph, const Node& node, const ops::DeviceRates& rates);
/// Of starting its commands: of an operator of phases one after the other.
double LaunchNs(const Node& node, const ops::DeviceRates& rates);

}  // namespace heddle::scheduler
