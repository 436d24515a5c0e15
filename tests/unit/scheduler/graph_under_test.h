// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/programs/graph.h"

namespace heddle::scheduler {

/// A graph that a test writes node by node.
class GraphUnderTest {
 public:
  NodeId Variable(const std::string& name, ValueInfo info) {
    Node node;
    node.op = "variable";
    node.SetAttribute("name", name);
    node.info = info;
    return graph.Add(node);
  }
  NodeId Op(const std::string& op, std::vector<NodeId> inputs, ValueInfo info) {
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.info = info;
    node.position = {"test.dml", 3, 7};
    return graph.Add(node);
  }
  NodeId Assign(const std::string& name, NodeId value) {
    Node node;
    node.op = "assign";
    node.inputs = {value};
    node.SetAttribute("name", name);
    node.info = graph[value].info;
    return graph.Add(node);
  }
  Graph graph;
};

inline ValueInfo MatrixOf(int64_t rows, int64_t columns) { return ValueInfo::OfMatrix({rows, columns}); }

}  // namespace heddle::scheduler
