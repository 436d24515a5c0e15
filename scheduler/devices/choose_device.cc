// SPDX-License-Identifier: Apache-2.0
#include "scheduler/devices/choose_device.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/environment/random.h"
#include "core/programs/input_infos.h"
#include "core/programs/phased_operator.h"
#include "core/values/sizes.h"
#include "ops/base/operator.h"
#include "ops/base/split.h"
#include "ops/device/run/run_on_device.h"

namespace heddle::scheduler {
namespace {

constexpr double kNever = 1e18;  // Nanoseconds, of what must not be.

// The largest of the matrices that a node reads and makes, in bytes.
int64_t LargestMatrix(const Graph& graph, const Node& node) {
  double bytes = 0;
  const auto add = [&](const ValueInfo& info) {
    if (info.IsMatrix() && info.IsSized()) bytes = std::max(bytes, ops::BytesToMove(info));
  };
  for (const ValueInfo& info : InputInfos(graph, node)) add(info);
  for (const ValueInfo& info : ResultsOf(node)) add(info);
  return static_cast<int64_t>(std::min(bytes, 9e18));
}

// Whether the device has a kernel of the node, and room for what it reads and makes: of a node of a plan in
// panels that acts once, for all of it.
bool HasPlace(const Graph& graph, NodeId id, int32_t ranks, const std::vector<NodeInPanels>* in_panels,
              const DeviceOptions& options) {
  const NodeInPanels panels = in_panels == nullptr ? NodeInPanels() : (*in_panels)[static_cast<size_t>(id)];
  const bool acts_once = panels.pass == NodeInPanels::kOnce;
  if (panels.is_hosts || !CanRunOn(graph, id, ranks, /*keeps_values=*/acts_once, options).ok()) return false;
  if (in_panels == nullptr || !acts_once || options.memory_bytes == 0) return true;
  double bytes = 0;
  const auto add = [&](const ValueInfo& info) {
    if (info.IsMatrix() && info.IsSized()) bytes += ops::BytesToMove(info);
  };
  for (const ValueInfo& info : InputInfos(graph, graph[id])) add(info);
  for (const ValueInfo& info : ResultsOf(graph[id])) add(info);
  return bytes <= static_cast<double>(ranks) * static_cast<double>(options.memory_bytes);
}

std::optional<std::string> NewKernel(const Graph& graph, const Node& node, const DeviceOptions& options) {
  if (!options.new_kernel) return std::nullopt;
  return options.new_kernel(node, InputInfos(graph, node));
}

// A directed graph with capacities, cut between the processor's side and the device's.
class Division {
 public:
  using Vertex = size_t;

  Division() : host(Add()), device(Add()) {}

  Vertex Add() { return boost::add_vertex(graph_); }
  /// Costs `ns` if `from` is on the processor's side and `to` on the device's.
  void Connect(Vertex from, Vertex to, double ns) {
    const auto forth = boost::add_edge(from, to, graph_).first;
    const auto back = boost::add_edge(to, from, graph_).first;
    capacities_.push_back(ns);
    capacities_.push_back(0);
    boost::put(boost::edge_index, graph_, forth, capacities_.size() - 2);
    boost::put(boost::edge_index, graph_, back, capacities_.size() - 1);
    reverse_.push_back(back);
    reverse_.push_back(forth);
  }
  /// By vertex: whether the cheapest division has it on the device's side.
  std::vector<bool> Cut() {
    const size_t vertices = boost::num_vertices(graph_);
    std::vector<double> residual(capacities_.size());
    std::vector<Edge> predecessor(vertices);
    std::vector<boost::default_color_type> color(vertices, boost::white_color);
    std::vector<int64_t> distance(vertices, 0);
    const auto edges = boost::get(boost::edge_index, graph_);
    const auto places = boost::get(boost::vertex_index, graph_);
    boost::boykov_kolmogorov_max_flow(
        graph_, boost::make_iterator_property_map(capacities_.begin(), edges),
        boost::make_iterator_property_map(residual.begin(), edges),
        boost::make_iterator_property_map(reverse_.begin(), edges),
        boost::make_iterator_property_map(predecessor.begin(), places),
        boost::make_iterator_property_map(color.begin(), places),
        boost::make_iterator_property_map(distance.begin(), places), places, host, device);
    // Where both sides cost the same, the processor computes.
    std::vector<bool> is_device(vertices);
    for (Vertex v = 0; v < vertices; ++v) is_device[v] = color[v] == boost::white_color;
    return is_device;
  }

 private:
  using Edges = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                                      boost::property<boost::edge_index_t, size_t>>;
  using Edge = Edges::edge_descriptor;
  Edges graph_;
  std::vector<double> capacities_;
  std::vector<Edge> reverse_;

 public:
  const Vertex host, device;
};

class ByCost {
 public:
  ByCost(const Graph& graph, const std::vector<double>& host_ns, int32_t ranks,
         const std::vector<NodeInPanels>* in_panels, const DeviceOptions& options)
      : graph_(graph), host_ns_(host_ns), ranks_(ranks), in_panels_(in_panels), options_(options) {}

  std::vector<bool> Run() {
    vertices_.resize(graph_.nodes.size());
    readers_.resize(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.size(); ++id) AddNode(id);
    for (NodeId id = 0; id < graph_.size(); ++id) AddValue(id);
    const std::vector<bool> is_device = division_.Cut();
    std::vector<bool> chosen(graph_.nodes.size(), false);
    for (NodeId id = 0; id < graph_.size(); ++id)
      chosen[Index(id)] = can_run_[Index(id)] && is_device[vertices_[Index(id)]];
    return chosen;
  }

 private:
  static size_t Index(NodeId id) { return static_cast<size_t>(id); }

  // A rank has its share of what is large.
  double Share(double ns) const { return ns / static_cast<double>(ranks_); }
  NodeInPanels PanelsOf(NodeId id) const {
    return in_panels_ == nullptr ? NodeInPanels() : (*in_panels_)[Index(id)];
  }
  // Where a variable is. Plans in panels read those of the host.
  Residence ResidenceOf(const Node& variable) const {
    const auto found = options_.residences.find(variable.Text("name"));
    return in_panels_ != nullptr || found == options_.residences.end() ? Residence() : found->second;
  }

  void AddNode(NodeId id) {
    const Node& node = graph_[id];
    for (const NodeId input : node.inputs)
      if (input != kNoNode && (readers_[Index(input)].empty() || readers_[Index(input)].back() != id))
        readers_[Index(input)].push_back(id);
    Division::Vertex& vertex = vertices_[Index(id)];
    const NodeInPanels panels = PanelsOf(id);
    can_run_.push_back(HasPlace(graph_, id, ranks_, in_panels_, options_));
    vertex = division_.host;
    if (node.Is("variable")) {
      if (!ResidenceOf(node).on_host) vertex = division_.device;
      return;
    }
    if (!can_run_.back()) return;
    vertex = division_.Add();
    division_.Connect(division_.host, vertex,
                      Share(DeviceNs(graph_, node, options_.rates)) +
                          static_cast<double>(panels.acts) * LaunchNs(node, options_.rates));
    division_.Connect(vertex, division_.device, Share(host_ns_[Index(id)]));
    if (const std::optional<std::string> kernel = NewKernel(graph_, node, options_))
      division_.Connect(VertexOf(*kernel), vertex, kNever);
  }

  // A kernel is compiled where one of its operators is on the device's side.
  Division::Vertex VertexOf(const std::string& kernel) {
    const auto [found, is_new] = kernels_.try_emplace(kernel);
    if (!is_new) return found->second;
    found->second = division_.Add();
    division_.Connect(division_.host, found->second, options_.rates.compile_ns / options_.runs);
    return found->second;
  }

  // The node that makes a value, which may be one of several.
  NodeId MakerOf(NodeId id) const { return graph_[id].Is("result") ? graph_[id].inputs[0] : id; }

  // Where the cells of a value are that a node makes; nullopt: in both memories.
  std::optional<Division::Vertex> PlaceOf(NodeId id) const {
    const Node& node = graph_[id];
    if (node.Is("variable")) {
      const Residence residence = ResidenceOf(node);
      if (residence.on_host && residence.on_device) return std::nullopt;
      return vertices_[Index(id)];
    }
    const NodeId maker = MakerOf(id);
    const size_t result = node.Is("result") ? static_cast<size_t>(node.ResultIndex()) : 0;
    if (!can_run_[Index(maker)]) return division_.host;
    const std::vector<ValueInfo> infos = InputInfos(graph_, graph_[maker]);
    const bool stays = ops::StaysOnDevice(graph_[maker], infos, result) && !IsListed(maker, infos, result);
    return stays ? vertices_[Index(maker)] : division_.host;
  }

  // Whether the host makes a result of what the panels come to.
  bool IsListed(NodeId maker, const std::vector<ValueInfo>& infos, size_t result) const {
    if (PanelsOf(maker).pass == NodeInPanels::kOnce) return false;
    const Node& node = graph_[maker];
    const ops::RowRule rule = ops::RowRuleOf(node, infos);
    return rule == ops::RowRule::kReduce ||
           (rule == ops::RowRule::kMixed && ops::FindOperator(node.op)->reduces(node, result));
  }

  // Whether the reader gets the value as it is, from the memory in which it is made: else rows of it come
  // from the host.
  bool ReadsInPlace(NodeId id, NodeId reader) const {
    const int made = PanelsOf(MakerOf(id)).pass, read = PanelsOf(reader).pass;
    if (made != NodeInPanels::kOnce || read == NodeInPanels::kOnce) return made == read;
    const Node& node = graph_[reader];
    const std::vector<ValueInfo> infos = InputInfos(graph_, node);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] == id &&
          ops::InputUseOf(node, infos, static_cast<int>(i)) == ops::InputUse::kRows)
        return false;
    return true;
  }

  // Copies of the value: one in each direction at most, and into each further pass that reads its rows.
  void AddValue(NodeId id) {
    const Node& node = graph_[id];
    if (!node.info.IsMatrix()) return;
    const std::optional<Division::Vertex> place = PlaceOf(id);
    if (!place) return;
    std::vector<Division::Vertex> in_place, on_host;
    std::map<int, std::pair<int64_t, std::vector<Division::Vertex>>> by_pass;  // With acts.
    for (const NodeId reader : readers_[Index(id)]) {
      if (graph_[reader].Is("result")) continue;
      if (graph_[reader].Is("assign")) {
        // Whoever reads a variable that is assigned finds it where it is; of panels the host has them.
        if (in_panels_ != nullptr) on_host.push_back(division_.host);
        continue;
      }
      if (ReadsInPlace(id, reader)) {
        in_place.push_back(vertices_[Index(reader)]);
        continue;
      }
      on_host.push_back(division_.host);
      auto& [acts, vertices] = by_pass[PanelsOf(reader).pass];
      acts = PanelsOf(reader).acts;
      vertices.push_back(vertices_[Index(reader)]);
    }
    double reads = 1;
    if (node.Is("variable") && in_panels_ == nullptr)
      if (const auto found = options_.reads.find(node.Text("name")); found != options_.reads.end())
        reads = found->second;
    const ops::DeviceRates& rates = options_.rates;
    const double bytes = Share(ops::BytesToMove(node.info));
    const auto ns = [&](double rate, int64_t commands) {
      return (bytes / rate * 1e9 + static_cast<double>(commands) * rates.launch_ns) / reads;
    };
    const int64_t acts = PanelsOf(MakerOf(id)).acts;
    AddCopy(*place, in_place, ns(rates.copy_in, acts), /*to_device=*/true);
    on_host.insert(on_host.end(), in_place.begin(), in_place.end());
    AddCopy(*place, on_host, ns(rates.copy_out, acts), /*to_device=*/false);
    for (const auto& [pass, readers] : by_pass)
      AddCopy(division_.host, readers.second, ns(rates.copy_in, readers.first), /*to_device=*/true);
  }

  void AddCopy(Division::Vertex from, const std::vector<Division::Vertex>& readers, double ns,
               bool to_device) {
    if (readers.empty() || from == (to_device ? division_.device : division_.host)) return;
    const Division::Vertex copy = division_.Add();
    const auto connect = [&](Division::Vertex a, Division::Vertex b, double cost) {
      to_device ? division_.Connect(a, b, cost) : division_.Connect(b, a, cost);
    };
    connect(from, copy, ns);
    for (const Division::Vertex reader : readers) connect(copy, reader, kNever);
  }

  const Graph& graph_;
  const std::vector<double>& host_ns_;
  const int32_t ranks_;
  const std::vector<NodeInPanels>* const in_panels_;
  const DeviceOptions& options_;
  Division division_;
  std::vector<Division::Vertex> vertices_;    // By node.
  std::vector<std::vector<NodeId>> readers_;  // By node.
  std::vector<bool> can_run_;                 // By node.
  std::map<std::string, Division::Vertex> kernels_;
};

}  // namespace

Status CanRunOn(const Graph& graph, NodeId id, int32_t ranks, bool keeps_values,
                const DeviceOptions& options) {
  const Node& node = graph[id];
  const ops::Operator* const op = ops::FindOperator(node.op);
  // Effects, and what is no operator, are the host's.
  if (op == nullptr || op->effect || node.Is("variable") || node.Is("literal"))
    return Unimplemented("on a device: {}", node.op);
  HEDDLE_RETURN_IF_ERROR(ops::DeviceOperators::CanRun(node, InputInfos(graph, node)));
  const int64_t most = options.description.largest_allocation_bytes;
  // A rank has its share of what is large; in panels a device has the rows of an act.
  const int64_t bytes = most > 0 && keeps_values ? LargestMatrix(graph, node) / ranks : 0;
  if (bytes > most)
    return Unimplemented("on a device: a matrix of {} bytes, where it gives {} at once", bytes, most);
  return OkStatus();
}

double CompileNs(const Graph& graph, const Node& node, const DeviceOptions& options) {
  return NewKernel(graph, node, options) ? options.rates.compile_ns / options.runs : 0;
}

double DeviceNs(const Graph& graph, const Node& node, const ops::DeviceRates& rates) {
  const ops::Cost cost = ops::CostOf(node, InputInfos(graph, node));
  return std::max(cost.bytes / rates.memory, cost.work / rates.fma) * 1e9;
}

double LaunchNs(const Node& node, const ops::DeviceRates& rates) {
  if (node.phased == nullptr) return rates.launch_ns;
  const std::vector<int> phases = PhasesOf(node.phased->body);
  const auto is_operator = [](int phase) { return phase >= 0; };
  return rates.launch_ns * static_cast<double>(std::count_if(phases.begin(), phases.end(), is_operator));
}

std::vector<bool> ChooseDevice(const Graph& graph, const std::vector<double>& host_ns, int32_t ranks,
                               const std::vector<NodeInPanels>* in_panels, const DeviceOptions& options) {
  if (options.rule == DeviceOptions::Rule::kByCost) {
    if (options.rates.memory <= 0) return std::vector<bool>(graph.nodes.size(), false);
    return ByCost(graph, host_ns, ranks, in_panels, options).Run();
  }
  std::vector<bool> chosen(graph.nodes.size(), false);
  SeededRandom random(options.seed);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const bool is_drawn = options.rule == DeviceOptions::Rule::kAll || random.Below(2) == 1;
    chosen[static_cast<size_t>(id)] = is_drawn && HasPlace(graph, id, ranks, in_panels, options);
  }
  return chosen;
}

}  // namespace heddle::scheduler
