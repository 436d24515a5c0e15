// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"

namespace heddle::compiler {

Result<Graph> RemoveDeadNodes(Graph graph, const PassOptions& options) {
  std::vector<NodeId> itself(graph.nodes.size());
  std::iota(itself.begin(), itself.end(), 0);
  std::vector<bool> keep(graph.nodes.size(), false);
  for (NodeId id = graph.size(); id-- > 0;) {
    const Node& node = graph[id];
    // Inference has found the files of reads: the cells are nobody's.
    const bool is_done = options.infos_are_exact && LooksOutside(node);
    if (node.Is("assign") || (IsOrdered(node) && !is_done)) keep[static_cast<size_t>(id)] = true;
    if (!keep[static_cast<size_t>(id)]) continue;
    for (NodeId input : node.inputs)
      if (input != kNoNode) keep[static_cast<size_t>(input)] = true;
  }
  return Compact(std::move(graph), itself, keep);
}

}  // namespace heddle::compiler
