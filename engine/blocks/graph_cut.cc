// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/graph_cut.h"

#include <algorithm>

#include "ops/base/operator.h"

namespace heddle::engine {
namespace {

bool IsOrdered(const Node& node) {
  const ops::Operator* op = ops::FindOperator(node.op);
  return op != nullptr && (op->effect || op->may_fail);
}

bool IsEffect(const Node& node) {
  const ops::Operator* op = ops::FindOperator(node.op);
  return op != nullptr && op->effect;
}

bool IsFreeToRepeat(const Node& node) { return node.Is("literal") || node.Is("variable"); }

bool IsKnown(const Node& node) {
  const std::span<const ValueInfo> results = ResultsOf(node);
  return std::all_of(results.begin(), results.end(), [](const ValueInfo& info) { return info.IsSized(); });
}

// True if running the node tells the sizes of its results.
bool TellsSizes(const Node& node) {
  const std::span<const ValueInfo> results = ResultsOf(node);
  return std::all_of(results.begin(), results.end(),
                     [](const ValueInfo& info) { return info.IsScalar() || info.IsTabular(); });
}

// Nodes that the effects before `end` need, those effects included, and those that make its inputs if it
// waits: its path may be among what is computed.
std::vector<bool> NeededBefore(const Graph& graph, NodeId end, bool waits) {
  std::vector<bool> needed(graph.nodes.size(), false);
  if (waits)
    for (const NodeId input : graph[end].inputs) needed[static_cast<size_t>(input)] = true;
  for (NodeId id = end - 1; id >= 0; --id) {
    const Node& node = graph[id];
    if (IsOrdered(node)) needed[static_cast<size_t>(id)] = true;
    if (!needed[static_cast<size_t>(id)]) continue;
    for (NodeId input : node.inputs)
      if (input != kNoNode) needed[static_cast<size_t>(input)] = true;
    for (NodeId before : node.after) needed[static_cast<size_t>(before)] = true;
  }
  return needed;
}

// Whether `node` can run in the first part, given which of its predecessors do.
bool CanRunFirst(const compiler::InferOutcome& inferred, const Node& node, const std::vector<bool>& first) {
  if (node.Is("assign")) return false;
  bool scalars_known = true;
  for (NodeId input : node.inputs) {
    if (input == kNoNode) continue;
    const ValueInfo& info = inferred.graph[input].info;
    if (!first[static_cast<size_t>(input)] || !info.IsSized()) return false;
    if (info.IsScalar() && !inferred.values[static_cast<size_t>(input)]) scalars_known = false;
  }
  for (NodeId before : node.after)
    if (!first[static_cast<size_t>(before)]) return false;
  if (IsKnown(node) || IsEffect(node)) return true;
  // A matrix or frame whose size the cells decide: running it is the way to know. One that waits for a scalar
  // may become known.
  return TellsSizes(node) && scalars_known;
}

std::vector<NodeId> KeepOnly(const std::vector<NodeId>& ids, const std::vector<NodeId>& new_ids) {
  std::vector<NodeId> kept;
  for (NodeId id : ids)
    if (new_ids[static_cast<size_t>(id)] != kNoNode) kept.push_back(new_ids[static_cast<size_t>(id)]);
  return kept;
}

Node MakeNamed(const char* op, const std::string& name, const Node& like) {
  Node node;
  node.op = op;
  node.SetAttribute("name", name);
  node.info = like.info;
  node.position = like.position;
  return node;
}

}  // namespace

Cut CutGraph(const compiler::InferOutcome& inferred, int part) {
  const Graph& graph = inferred.graph;
  const size_t size = graph.nodes.size();
  // Neither a node that cannot be nor a read that waits for a write is passed by what acts behind it.
  const bool stops = inferred.failed != kNoNode || inferred.waiting != kNoNode;
  NodeId end = graph.size();
  for (const NodeId id : {inferred.failed, inferred.waiting})
    if (id != kNoNode) end = std::min(end, id);
  const std::vector<bool> needed =
      stops ? NeededBefore(graph, end, end == inferred.waiting) : std::vector<bool>(size, true);

  std::vector<bool> first(size, false);
  bool acts = false;  // anything but literals and variables
  for (NodeId id = 0; id < graph.size(); ++id) {
    const auto i = static_cast<size_t>(id);
    if (graph[id].Is("result")) {  // goes with its tuple, which is in no variable
      first[i] = first[static_cast<size_t>(graph[id].inputs[0])];
      continue;
    }
    if (!needed[i] || id >= end || !CanRunFirst(inferred, graph[id], first)) continue;
    first[i] = true;
    acts = acts || !IsFreeToRepeat(graph[id]);
  }
  Cut cut;
  if (!acts) {
    if (!stops) cut.rest = graph;
    return cut;
  }

  std::vector<bool> read_first(size, false);  // by a node of the first part
  std::vector<bool> read_later(size, false);  // by the second part, so it needs a temporary
  for (NodeId id = 0; id < graph.size(); ++id) {
    std::vector<bool>& read = first[static_cast<size_t>(id)] ? read_first : read_later;
    for (NodeId input : graph[id].inputs)
      if (input != kNoNode) read[static_cast<size_t>(input)] = true;
  }

  std::vector<NodeId> first_ids(size, kNoNode);
  std::vector<NodeId> rest_ids(size, kNoNode);
  auto append = [&](Graph& target, std::vector<NodeId>& ids, NodeId id) {
    Node node = graph[id];
    for (NodeId& input : node.inputs)
      if (input != kNoNode) input = ids[static_cast<size_t>(input)];
    node.after = KeepOnly(node.after, ids);
    ids[static_cast<size_t>(id)] = target.Add(std::move(node));
  };
  for (NodeId id = 0; id < graph.size(); ++id) {
    const auto i = static_cast<size_t>(id);
    const Node& node = graph[id];
    if (IsFreeToRepeat(node)) {
      if (read_first[i]) append(cut.first, first_ids, id);
      if (read_later[i]) append(cut.rest, rest_ids, id);
    } else if (!first[i]) {
      append(cut.rest, rest_ids, id);
    } else {
      append(cut.first, first_ids, id);
      if (!read_later[i]) continue;
      const std::string name = fmt::format("%cut{}_{}", part, id);
      Node assign = MakeNamed("assign", name, node);
      assign.inputs = {first_ids[i]};
      cut.first.Add(std::move(assign));
      rest_ids[i] = cut.rest.Add(MakeNamed("variable", name, node));
      cut.temporaries.push_back(name);
    }
  }
  return cut;
}

}  // namespace heddle::engine
