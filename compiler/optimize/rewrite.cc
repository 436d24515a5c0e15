// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/rewrite.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/base/operator.h"
#include "ops/simd/cellwise/elementwise_codes.h"

namespace heddle::compiler {

bool IsSameScalar(const Scalar& a, const Scalar& b) {
  if (!a.IsDouble() || !b.IsDouble()) return a == b;
  const double x = a.AsDouble(), y = b.AsDouble();
  return std::isnan(x) ? std::isnan(y) : std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
}

bool IsCellWise(const Node& node) { return ops::FindBinaryCode(node.op) || ops::FindUnaryCode(node.op); }

bool IsOrdered(const Node& node) {
  const ops::Operator* op = ops::FindOperator(node.op);
  return op != nullptr && (op->effect || op->may_fail);
}

bool LooksOutside(const Node& node) {
  const ops::Operator* op = ops::FindOperator(node.op);
  return op != nullptr && op->may_fail && !op->effect && !op->pure;
}

bool TellsTime(std::string_view op) {
  const ops::Operator* found = ops::FindOperator(op);
  return found != nullptr && !found->pure && !found->effect && found->max_inputs == 0;
}

namespace {

// True if every node stays, and every order edge means what it says.
bool IsCompact(const Graph& graph, const std::vector<NodeId>& stands_for, const std::vector<bool>& keep) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!keep[i] || static_cast<size_t>(stands_for[i]) != i) return false;
    const std::vector<NodeId>& after = graph.nodes[i].after;
    if (after.empty()) continue;
    if (!IsOrdered(graph.nodes[i])) return false;
    for (size_t k = 0; k < after.size(); ++k)
      if (!IsOrdered(graph[after[k]]) ||
          std::find(after.begin(), after.begin() + k, after[k]) != after.begin() + k)
        return false;
  }
  return true;
}

}  // namespace

Graph Compact(Graph graph, const std::vector<NodeId>& stands_for, const std::vector<bool>& keep) {
  if (IsCompact(graph, stands_for, keep)) return graph;
  const size_t count = graph.nodes.size();
  std::vector<NodeId> final_id(count, kNoNode);   // id in the new graph of the node that stands for i
  std::vector<std::vector<NodeId>> order(count);  // what an order edge to i means now, as new ids
  Graph result;
  result.nodes.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    Node& node = graph.nodes[i];
    std::vector<NodeId> after;
    for (NodeId earlier : node.after)
      for (NodeId id : order[static_cast<size_t>(earlier)])
        if (std::find(after.begin(), after.end(), id) == after.end()) after.push_back(id);

    const auto other = static_cast<size_t>(stands_for[i]);
    if (other != i) {
      final_id[i] = final_id[other];
      order[i] = order[other].empty() ? after : order[other];
      // Both orders hold: the merged node came after `after` too, which is at or before the node that stands
      // for it or has to be waited for as well.
      if (!order[other].empty())
        for (NodeId id : after)
          if (std::find(order[i].begin(), order[i].end(), id) == order[i].end()) order[i].push_back(id);
      continue;
    }
    if (!keep[i]) {
      order[i] = std::move(after);
      continue;
    }
    const bool ordered = IsOrdered(node);
    for (NodeId& input : node.inputs)
      if (input != kNoNode) input = final_id[static_cast<size_t>(input)];
    if (ordered) {
      node.after = std::move(after);
    } else {
      node.after.clear();
      order[i] = std::move(after);
    }
    final_id[i] = result.Add(std::move(node));
    if (ordered) order[i] = {final_id[i]};
  }
  return result;
}

}  // namespace heddle::compiler
