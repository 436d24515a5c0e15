// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"

namespace heddle::compiler {
namespace {

// A op B where the only cell of B is repeated over rows and columns of A.
bool RepeatsSingleCell(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 2 || node.inputs[1] == kNoNode || !IsCellWise(node)) return false;
  const ValueInfo &left = graph[node.inputs[0]].info, &right = graph[node.inputs[1]].info;
  return left.IsMatrix() && right.IsMatrix() && left.shape.rows > 1 && left.shape.columns > 1 &&
         right.shape == Shape{1, 1};
}

}  // namespace

Result<Graph> TakeSingleCells(Graph graph, const PassOptions& options) {
  const auto repeats = [&](const Node& node) { return RepeatsSingleCell(graph, node); };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), repeats)) return graph;
  if (options.sizes_matter != nullptr) *options.sizes_matter = true;
  Graph made;
  std::vector<NodeId> new_ids;
  for (const Node& node : graph.nodes) {
    Node copy = node;
    for (NodeId& input : copy.inputs)
      if (input != kNoNode) input = new_ids[static_cast<size_t>(input)];
    for (NodeId& earlier : copy.after) earlier = new_ids[static_cast<size_t>(earlier)];
    if (repeats(node)) {
      Node cell;
      cell.op = "as.scalar";
      cell.inputs = {copy.inputs[1]};
      cell.info = ValueInfo::OfScalar(ValueType::kDouble);
      cell.position = node.position;
      copy.inputs[1] = made.Add(std::move(cell));
    }
    new_ids.push_back(made.Add(std::move(copy)));
  }
  return made;
}

}  // namespace heddle::compiler
