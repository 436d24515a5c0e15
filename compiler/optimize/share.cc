// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <string>

#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

size_t HashOf(const Scalar& scalar) {
  if (scalar.IsString()) return std::hash<std::string>()(scalar.AsString());
  const double number = scalar.AsDouble();
  return std::isnan(number) ? 1 : std::hash<uint64_t>()(std::bit_cast<uint64_t>(number));
}

// Finds the first of nodes that make the same value of the same inputs: a table of twice as many places as
// nodes, in which a node is at the first free place from that of its hash on.
class FirstNodes {
 public:
  FirstNodes(const Graph& graph, const std::vector<NodeId>& stands_for)
      : graph_(graph), stands_for_(stands_for) {
    while (places_.size() < 2 * graph.nodes.size()) places_.resize(2 * places_.size(), kNoNode);
  }

  NodeId Find(NodeId id) {
    const size_t last = places_.size() - 1;
    for (size_t place = HashOf(graph_[id]) & last;; place = (place + 1) & last) {
      if (places_[place] == kNoNode) places_[place] = id;
      if (places_[place] == id || IsSame(graph_[places_[place]], graph_[id])) return places_[place];
    }
  }

 private:
  NodeId Input(NodeId input) const {
    return input == kNoNode ? input : stands_for_[static_cast<size_t>(input)];
  }

  size_t HashOf(const Node& node) const {
    size_t hash = std::hash<std::string>()(node.op);
    const auto add = [&](size_t part) { hash = (hash ^ part) * size_t{0x9E3779B97F4A7C15} + (hash >> 29); };
    for (const NodeId input : node.inputs) add(static_cast<size_t>(Input(input)));
    for (const auto& [name, value] : node.attributes) add(compiler::HashOf(value));
    return hash ^ (hash >> 32);
  }

  bool IsSame(const Node& a, const Node& b) const {
    return a.op == b.op && a.fused == b.fused && a.phased == b.phased &&
           std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(),
                      [&](NodeId x, NodeId y) { return Input(x) == Input(y); }) &&
           std::equal(a.attributes.begin(), a.attributes.end(), b.attributes.begin(), b.attributes.end(),
                      [](const auto& x, const auto& y) {
                        return x.first == y.first && IsSameScalar(x.second, y.second);
                      });
  }

  const Graph& graph_;
  const std::vector<NodeId>& stands_for_;  // as far as they are known
  std::vector<NodeId> places_ = {kNoNode};
};

bool CanShare(const Node& node) {
  if (node.Is("literal") || node.Is("variable") || node.Is("result")) return true;
  const ops::Operator* op = ops::FindOperator(node.op);
  return op != nullptr && op->pure && !op->effect;
}

}  // namespace

Result<Graph> ShareCommonSubexpressions(Graph graph, const PassOptions&) {
  std::vector<NodeId> stands_for(graph.nodes.size());
  FirstNodes first(graph, stands_for);
  for (NodeId id = 0; id < graph.size(); ++id) {
    stands_for[static_cast<size_t>(id)] = id;
    if (CanShare(graph[id])) stands_for[static_cast<size_t>(id)] = first.Find(id);
  }
  return Compact(std::move(graph), stands_for, std::vector<bool>(stands_for.size(), true));
}

}  // namespace heddle::compiler
