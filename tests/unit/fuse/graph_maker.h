// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/programs/graph.h"
#include "ops/base/operator.h"

namespace heddle::compiler {

/// Writes inferred graphs, one node a line. Left-out literals and variables can be padded so that ids are as
/// wanted.
class GraphMaker {
 public:
  NodeId Matrix(const std::string& name, int64_t rows, int64_t columns, Format format = Format::kDense) {
    return Variable(name, ValueInfo::OfMatrix({rows, columns}, format));
  }
  NodeId Scalar(const std::string& name) { return Variable(name, ValueInfo::OfScalar(ValueType::kDouble)); }
  NodeId Variable(const std::string& name, ValueInfo info) {
    Node node;
    node.op = "variable";
    node.SetAttribute("name", name);
    node.info = info;
    return graph_.Add(std::move(node));
  }
  NodeId Literal(heddle::Scalar value) {
    Node node;
    node.op = "literal";
    node.info = ValueInfo::OfScalar(value.type());
    node.SetAttribute("value", std::move(value));
    return graph_.Add(std::move(node));
  }
  /// Skips to this id with nodes that nobody needs.
  void SkipTo(NodeId id) {
    while (graph_.size() < id) Literal(0.0);
  }
  NodeId Add(const std::string& op, std::vector<NodeId> inputs) {
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.info = InfoOf(node);
    return graph_.Add(std::move(node));
  }
  NodeId Assign(const std::string& name, NodeId value) {
    Node node;
    node.op = "assign";
    node.inputs = {value};
    node.info = graph_[value].info;
    node.SetAttribute("name", name);
    return graph_.Add(std::move(node));
  }
  Graph& graph() { return graph_; }

 private:
  // The catalog's rule, but for sampledProduct, which tests here need whether or not a rule makes it.
  ValueInfo InfoOf(const Node& node) {
    if (node.op == "sampledProduct") return graph_[node.inputs[0]].info;
    std::vector<ValueInfo> infos;
    std::vector<const heddle::Scalar*> scalars;
    for (NodeId input : node.inputs) {
      infos.push_back(input == kNoNode ? ValueInfo() : graph_[input].info);
      scalars.push_back(input == kNoNode ? nullptr : graph_[input].FindAttribute("value"));
    }
    const Result<ValueInfo> info = ops::Infer({node, infos, scalars, nullptr});
    EXPECT_TRUE(info.ok()) << node.op << ": " << info.status().ToString();
    return info.ok() ? *info : ValueInfo();
  }

  Graph graph_;
};

}  // namespace heddle::compiler
