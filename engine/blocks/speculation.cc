// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/speculation.h"

#include <algorithm>
#include <string_view>

#include "engine/variables/random_seeds.h"
#include "ops/base/operator.h"
#include "ops/recursion/recursive_operator.h"

namespace heddle::engine {
namespace {

constexpr const char* kTemporary = "%ahead ";
constexpr size_t kMostNodes = 200;
// A rank waits for about so long when it asks another one and is answered.
constexpr int64_t kMostNsOfRank = 100'000;

const ops::Operator* OperatorOf(const Node& node) { return ops::FindOperator(node.op); }

// Whether nobody can tell whether it has run, but by what it leaves.
bool IsPure(const Node& node) {
  const ops::Operator* const op = OperatorOf(node);
  if (node.Is("variable") || node.Is("literal") || node.Is("assign") || node.Is("result"))
    return node.after.empty();
  // What a recursion evaluates is kept for its gradient.
  const bool keeps_something =
      node.Is(ops::kRecursive) || node.Is(ops::kRecursiveForward) || node.Is(ops::kRecursiveBackward);
  return op != nullptr && node.after.empty() && op->pure && !op->effect && !op->may_fail && !op->files &&
         !op->updates && !keeps_something;
}

bool IsPart(const Graph& graph) {
  return !graph.nodes.empty() && graph.nodes.size() <= kMostNodes && !RandomSeeds::IsDrawnFor(graph);
}

// Adds nodes of another graph; their ids grow by `by`.
void AddNodes(const Graph& from, NodeId begin, NodeId end, NodeId by, Graph* to) {
  for (NodeId id = begin; id < end; ++id) {
    Node node = from[id];
    for (NodeId& input : node.inputs)
      if (input != kNoNode) input += by;
    for (NodeId& before : node.after) before += by;
    to->Add(std::move(node));
  }
}

}  // namespace

std::pair<Graph, Graph> Parted(const Graph& graph, NodeId boundary) {
  std::pair<Graph, Graph> parts;
  AddNodes(graph, 0, boundary, 0, &parts.first);
  AddNodes(graph, boundary, graph.size(), -boundary, &parts.second);
  return parts;
}

Graph Joined(Graph first, const Graph& second) {
  AddNodes(second, 0, second.size(), first.size(), &first);
  return first;
}

std::optional<Speculation> SpeculationOf(const Block& loop) {
  if (loop.body.empty() || loop.body.front().kind != Block::Kind::kBasic) return std::nullopt;
  const Graph& body = loop.body.front().graph;
  if (!IsPart(loop.graph) || !IsPart(body)) return std::nullopt;
  if (!std::ranges::all_of(body.nodes, IsPure)) return std::nullopt;
  // Where the body is scalar arithmetic, it is done in no time when the predicate is known.
  if (std::ranges::none_of(body.nodes, [](const Node& node) { return node.info.IsTabular(); }))
    return std::nullopt;
  const bool has_effect = std::ranges::any_of(loop.graph.nodes, [](const Node& node) {
    const ops::Operator* const op = OperatorOf(node);
    return op != nullptr && (op->effect || op->files || op->updates);
  });
  if (has_effect) return std::nullopt;
  Speculation speculation;
  speculation.boundary = loop.graph.size();
  speculation.graph = Joined(loop.graph, body);
  for (NodeId id = speculation.boundary; id < speculation.graph.size(); ++id) {
    Node& node = speculation.graph[id];
    if (!node.Is("assign")) continue;
    const std::string name = node.Text("name");
    speculation.assigned.emplace_back(name, kTemporary + name);
    node.SetAttribute("name", Scalar(kTemporary + name));
  }
  return speculation;
}

bool IsWorthwhile(const Plan& plan) {
  std::vector<int64_t> ns(static_cast<size_t>(plan.ranks));
  for (const Task& task : plan.tasks) {
    if (task.cost_ns == kUnboundedCost) return false;
    ns[task.id.rank()] += task.cost_ns;
  }
  return std::ranges::all_of(ns, [](int64_t each) { return each <= kMostNsOfRank; });
}

}  // namespace heddle::engine
