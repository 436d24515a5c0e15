// SPDX-License-Identifier: Apache-2.0
#include "engine/devices/placement_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/programs/fused_operator.h"
#include "core/programs/input_infos.h"
#include "engine/session/planning.h"
#include "ops/device/run/run_on_device.h"
#include "ops/fused/fused.h"
#include "scheduler/devices/choose_device.h"
#include "scheduler/estimate.h"

namespace heddle::engine {
namespace {

std::string Time(double ns) {
  return ns < 1e6 ? fmt::format("{:.0f} us", ns / 1e3) : fmt::format("{:.1f} ms", ns / 1e6);
}

std::string NameOf(const Node& node) {
  if (node.Is("variable")) return node.Text("name");
  return IsFused(node) ? ops::NameOf(*node.fused) : node.op;
}

bool IsOnMatrices(const Graph& graph, const Node& node) {
  if (node.Is("assign") || node.Is("result") || node.Is("literal") || node.Is("variable")) return false;
  const auto is_matrix = [&](NodeId input) { return input != kNoNode && graph[input].info.IsMatrix(); };
  return ResultsOf(node)[0].IsMatrix() || std::any_of(node.inputs.begin(), node.inputs.end(), is_matrix);
}

bool IsSized(const Graph& graph, const Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
    return input == kNoNode || !graph[input].info.IsTabular() || graph[input].info.IsSized();
  });
}

// Where result `i` of an operator is made.
Residence ResidenceOf(const Graph& graph, NodeId id, size_t i, const std::vector<bool>& chosen) {
  const Node& node = graph[id];
  const bool is_there =
      chosen[static_cast<size_t>(id)] && ops::StaysOnDevice(node, InputInfos(graph, node), i);
  return {.on_host = !is_there, .on_device = is_there};
}

// Why there is no kernel, without where.
std::string_view WithoutPlace(const Status& why) {
  constexpr std::string_view kPlace = "on a device: ";
  const std::string_view text = why.message();
  return text.starts_with(kPlace) ? text.substr(kPlace.size()) : text;
}

}  // namespace

Result<std::string> PlacementText::Of(const Graph& graph) {
  scheduler::ScheduleOptions options = ScheduleOptionsOf(options_);
  if (!options.device) return std::string();
  scheduler::DeviceOptions& device = *options.device;
  device.residences = residences_;
  const std::vector<double> host_ns = scheduler::NodesNs(graph, options.constants);
  const std::vector<bool> chosen =
      scheduler::ChooseDevice(graph, host_ns, options.ranks, /*in_panels=*/nullptr, device);
  const std::string name = fmt::format("{}:{}", Name(device.device.type), device.device.index);
  std::string text;
  std::vector<Residence> of_node(graph.nodes.size());
  std::vector<bool> is_copied(graph.nodes.size(), false);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    const auto at = static_cast<size_t>(id);
    Residence& residence = of_node[at];
    if (node.Is("variable")) {
      if (const auto found = residences_.find(node.Text("name")); found != residences_.end())
        residence = found->second;
      continue;
    }
    if (node.Is("assign")) {
      residences_[node.Text("name")] = of_node[static_cast<size_t>(node.inputs[0])];
      continue;
    }
    if (node.Is("result")) {
      residence = ResidenceOf(graph, node.inputs[0], node.ResultIndex(), chosen);
      continue;
    }
    if (!IsOnMatrices(graph, node)) continue;
    const std::vector<ValueInfo> infos = InputInfos(graph, node);
    std::string line = fmt::format("  line {} {}", node.position.line, NameOf(node));
    for (const ValueInfo& info : ResultsOf(node))
      if (info.IsMatrix()) line += fmt::format(" {}", info.shape);
    if (!IsSized(graph, node)) {
      text += line + ": chosen when its operands are there\n";
      continue;
    }
    for (const NodeId input : node.inputs) {
      if (input == kNoNode || !graph[input].info.IsMatrix()) continue;
      const Residence& where = of_node[static_cast<size_t>(input)];
      if ((chosen[at] ? where.on_device : where.on_host) || is_copied[static_cast<size_t>(input)]) continue;
      is_copied[static_cast<size_t>(input)] = true;
      text += fmt::format("  copies {} {} to {}\n", NameOf(graph[input]), graph[input].info.shape,
                          chosen[at] ? name : "the processor");
    }
    if (chosen[at]) {
      text += fmt::format("{}: on {}", line, name);
      if (device.rates.memory > 0)
        text += fmt::format(" ({}, on the processor {})",
                            Time(scheduler::DeviceNs(graph, node, device.rates) +
                                 scheduler::LaunchNs(node, device.rates)),
                            Time(host_ns[at]));
      text += "\n";
      residence = ResidenceOf(graph, id, 0, chosen);
      continue;
    }
    const Status has_kernel = ops::DeviceOperators::CanRun(node, infos);
    const Status can_run = scheduler::CanRunOn(graph, id, options.ranks, /*keeps_values=*/true, device);
    text += line + ": on the processor, ";
    if (!has_kernel.ok())
      text += fmt::format("no kernel: {}\n", WithoutPlace(has_kernel));
    else if (!can_run.ok())
      text += fmt::format("no room: {}\n", WithoutPlace(can_run));
    else if (const double ns = scheduler::CompileNs(graph, node, device); ns > 0)
      text += fmt::format("which is faster than copies, {} and compiling its kernel, {}\n", name, Time(ns));
    else
      text += fmt::format("which is faster than copies and {}\n", name);
  }
  return text;
}

}  // namespace heddle::engine
