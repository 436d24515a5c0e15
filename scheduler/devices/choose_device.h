// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/programs/graph.h"
#include "core/status.h"
#include "scheduler/devices/device_options.h"

namespace heddle::scheduler {

/// What a plan in panels does with a node (scheduler/nodes_in_panels.h).
struct NodeInPanels {
  static constexpr int kOnce = -1;
  int pass = kOnce;       ///< Those with the same number act panel by panel in one pass; kOnce: it acts once.
  int64_t acts = 1;       ///< Panels of the pass.
  bool is_hosts = false;  ///< It reads panels as it needs them, or makes them: no device has those.
};

/// Which nodes of a graph, all shapes known, run on the device: by DeviceOptions::rule, of those that it can
/// run. By cost: the cheapest division of the whole graph, a copy counted once a value and direction
/// (a minimum cut, as H. Stone, "Multiprocessor scheduling with the aid of network flow algorithms", 1977,
/// with a further node for each value that several read). `host_ns`: how long each node takes on the
/// processor of a rank. A kernel that has to be compiled first costs that once, for all operators of the
/// graph that share it and all runs of the plan.
///
/// `in_panels`: by node, of a plan in panels; nullptr: values are whole, and stay in the memory of the
/// device. In panels they stay there within a pass (scheduler/passes/panel_copies.h): rows that leave it, and
/// those that it reads of others, are copied once a pass, in as many commands as there are panels; what is
/// whole and read at each act is copied once.
std::vector<bool> ChooseDevice(const Graph& graph, const std::vector<double>& host_ns, int32_t ranks,
                               const std::vector<NodeInPanels>* in_panels, const DeviceOptions& options);

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
