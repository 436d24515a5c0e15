// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/optimize/infer.h"

namespace heddle::compiler {

/// Assembles the graph of one straight-line block. Variables are numbered locally: reading one that was
/// assigned in the block gives the node of its value. Operators with effects or that may fail are chained in
/// script order. Every node's type (and value, where literals give it) is known at once as far as possible.
class BlockBuilder {
 public:
  BlockBuilder() : inference_(nullptr) {}

  NodeId Literal(Scalar value, SourcePosition position);
  /// The value of a variable; `known` is what is known about it when it is a live-in of the block.
  NodeId Read(const std::string& variable, const LiveIn& known, SourcePosition position);
  NodeId Add(std::string op, std::vector<NodeId> inputs, SourcePosition position,
             std::vector<std::pair<std::string, Scalar>> attributes = {});
  /// From here on the variable is this node; the last such node becomes the block's live-out.
  void Assign(const std::string& variable, NodeId node, SourcePosition position);

  const ValueInfo& InfoOf(NodeId id) const { return graph_[id].info; }
  const std::optional<Scalar>& ValueOf(NodeId id) const { return values_[static_cast<size_t>(id)]; }
  const Node& NodeOf(NodeId id) const { return graph_[id]; }
  bool IsEmpty() const { return graph_.nodes.empty(); }

  /// The finished graph; the builder is empty afterwards.
  Graph Finish();

 private:
  NodeId AddInferred(Node node);

  Graph graph_;
  std::vector<std::optional<Scalar>> values_;
  std::map<std::string, NodeId> current_;                         // what variables are now
  std::map<std::string, NodeId> live_in_;                         // their "variable" nodes
  std::vector<std::pair<std::string, SourcePosition>> assigned_;  // in order of the first assignment
  std::set<std::string> assigned_names_;
  NodeId last_ordered_ = kNoNode;
  NodeInference inference_;
};

}  // namespace heddle::compiler
