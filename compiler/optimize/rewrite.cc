// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/rewrite.h"

#include <algorithm>

#include "ops/operator.h"
#include "ops/simd/elementwise_codes.h"

namespace heddle::compiler {

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

Graph Compact(Graph graph, const std::vector<NodeId>& stands_for, const std::vector<bool>& keep) {
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
