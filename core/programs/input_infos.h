// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/programs/graph.h"

namespace heddle {

/// What is known of the inputs of a node of `graph`, in their order; nothing of an input that is left out.
inline std::vector<ValueInfo> InputInfos(const Graph& graph, const Node& node) {
  std::vector<ValueInfo> infos;
  for (const NodeId input : node.inputs)
    infos.push_back(input == kNoNode ? ValueInfo() : graph[input].info);
  return infos;
}

}  // namespace heddle
