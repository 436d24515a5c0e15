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

// Why there is no kernel, without where.
std::string_view WithoutPlace(const Status& why) {
  constexpr std::string_view kPlace = "on a device: ";
  const std::string_view text = why.message();
  return text.starts_with(kPlace) ? text.substr(kPlace.size()) : text;
}

// The lines of one block.
class BlockText {
 public:
  BlockText(const Graph& graph, const scheduler::ScheduleOptions& options,
            std::map<std::string, Residence>* residences)
      : graph_(graph),
        ranks_(options.ranks),
        device_(*options.device),
        host_ns_(scheduler::NodesNs(graph, options.constants)),
        chosen_(scheduler::ChooseDevice(graph, host_ns_, options.ranks, /*in_panels=*/nullptr, device_)),
        name_(fmt::format("{}:{}", Name(device_.device.type), device_.device.index)),
        residences_(*residences),
        of_node_(graph.nodes.size()),
        is_copied_(graph.nodes.size(), false) {}

  std::string Text() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (node.Is("variable")) {
        if (const auto found = residences_.find(node.Text("name")); found != residences_.end())
          of_node_[Index(id)] = found->second;
      } else if (node.Is("assign")) {
        residences_[node.Text("name")] = of_node_[Index(node.inputs[0])];
      } else if (node.Is("result")) {
        of_node_[Index(id)] = ResidenceOf(node.inputs[0], node.ResultIndex());
      } else if (IsOnMatrices(graph_, node)) {
        AddOperator(id);
      }
    }
    return std::move(text_);
  }

 private:
  static size_t Index(NodeId id) { return static_cast<size_t>(id); }

  // Where result `i` of an operator is made.
  Residence ResidenceOf(NodeId id, size_t i) const {
    const Node& node = graph_[id];
    const bool is_there = chosen_[Index(id)] && ops::StaysOnDevice(node, InputInfos(graph_, node), i);
    return {.on_host = !is_there, .on_device = is_there};
  }

  void AddOperator(NodeId id) {
    const Node& node = graph_[id];
    std::string line = fmt::format("  line {} {}", node.position.line, NameOf(node));
    for (const ValueInfo& info : ResultsOf(node))
      if (info.IsMatrix()) line += fmt::format(" {}", info.shape);
    if (!IsSized(graph_, node)) {
      text_ += line + ": chosen when its operands are there\n";
      return;
    }
    AddCopies(id);
    if (chosen_[Index(id)]) {
      text_ += fmt::format("{}: on {}{}\n", line, name_, TimesOf(id));
      of_node_[Index(id)] = ResidenceOf(id, 0);
    } else {
      text_ += fmt::format("{}: on the processor, {}\n", line, WhyNotOnDevice(id));
    }
  }

  // Of the operands, to where the operator runs.
  void AddCopies(NodeId id) {
    const bool is_there = chosen_[Index(id)];
    for (const NodeId input : graph_[id].inputs) {
      if (input == kNoNode || !graph_[input].info.IsMatrix()) continue;
      const Residence& where = of_node_[Index(input)];
      if ((is_there ? where.on_device : where.on_host) || is_copied_[Index(input)]) continue;
      is_copied_[Index(input)] = true;
      text_ += fmt::format("  copies {} {} to {}\n", NameOf(graph_[input]), graph_[input].info.shape,
                           is_there ? name_ : "the processor");
    }
  }

  std::string TimesOf(NodeId id) const {
    if (device_.rates.memory <= 0) return "";
    const double ns = scheduler::DeviceNs(graph_, graph_[id], device_.rates) +
                      scheduler::LaunchNs(graph_[id], device_.rates);
    return fmt::format(" ({}, on the processor {})", Time(ns), Time(host_ns_[Index(id)]));
  }

  std::string WhyNotOnDevice(NodeId id) const {
    const Node& node = graph_[id];
    const Status has_kernel = ops::DeviceOperators::CanRun(node, InputInfos(graph_, node));
    if (!has_kernel.ok()) return fmt::format("no kernel: {}", WithoutPlace(has_kernel));
    const Status can_run = scheduler::CanRunOn(graph_, id, ranks_, /*keeps_values=*/true, device_);
    if (!can_run.ok()) return fmt::format("no room: {}", WithoutPlace(can_run));
    if (const double ns = scheduler::CompileNs(graph_, node, device_); ns > 0)
      return fmt::format("which is faster than copies, {} and compiling its kernel, {}", name_, Time(ns));
    return fmt::format("which is faster than copies and {}", name_);
  }

  const Graph& graph_;
  const int ranks_;
  const scheduler::DeviceOptions& device_;
  const std::vector<double> host_ns_;  // By node.
  const std::vector<bool> chosen_;     // By node: it runs on the device.
  const std::string name_;             // Of the device.
  std::map<std::string, Residence>& residences_;
  std::vector<Residence> of_node_;
  std::vector<bool> is_copied_;  // By node.
  std::string text_;
};

}  // namespace

Result<std::string> PlacementText::Of(const Graph& graph) {
  scheduler::ScheduleOptions options = ScheduleOptionsOf(options_);
  if (!options.device) return std::string();
  options.device->residences = residences_;
  return BlockText(graph, options, &residences_).Text();
}

}  // namespace heddle::engine
