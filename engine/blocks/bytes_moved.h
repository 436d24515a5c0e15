// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "core/programs/graph.h"

namespace heddle::engine {

/// About what the operator of this node reads and writes: its dense operands and results. Fused operators
/// count for themselves (ops::FusedCounts).
inline int64_t BytesMoved(const Graph& graph, NodeId id) {
  const auto dense_bytes = [](const ValueInfo& info) {
    return info.format == Format::kDense ? KnownBytes(info) : 0;
  };
  const Node& node = graph[id];
  int64_t bytes = 0;
  for (const ValueInfo& result : ResultsOf(node)) bytes += dense_bytes(result);
  for (const NodeId input : node.inputs)
    if (input != kNoNode) bytes += dense_bytes(graph[input].info);
  return bytes;
}

/// True for an operator that reads or makes a matrix. Names of values are no operators.
inline bool MovesMatrices(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.Is("variable") || node.Is("literal") || node.Is("assign") || node.Is("result")) return false;
  const auto is_matrix = [](const ValueInfo& info) { return info.IsMatrix(); };
  return std::ranges::any_of(ResultsOf(node), is_matrix) ||
         std::ranges::any_of(node.inputs,
                             [&](NodeId input) { return input != kNoNode && is_matrix(graph[input].info); });
}

}  // namespace heddle::engine
