// SPDX-License-Identifier: Apache-2.0
#include "compiler/blocks/block_builder.h"

#include "ops/base/operator.h"

namespace heddle::compiler {

NodeId BlockBuilder::AddInferred(Node node) {
  constexpr size_t kUsualNodes = 8;  // at least, of a block
  if (graph_.nodes.empty()) {
    graph_.nodes.reserve(kUsualNodes);
    values_.reserve(kUsualNodes);
  }
  const NodeId id = graph_.Add(std::move(node));
  values_.emplace_back();
  // What is wrong with the types is reported by the static pass, which sees every block with all it can know.
  if (Status status = inference_.Infer(graph_, values_, id); !status.ok()) graph_[id].info = ValueInfo();
  return id;
}

NodeId BlockBuilder::Literal(Scalar value, SourcePosition position) {
  Node node;
  node.op = "literal";
  node.position = std::move(position);
  node.SetAttribute("value", std::move(value));
  return AddInferred(std::move(node));
}

NodeId BlockBuilder::Read(const std::string& variable, const LiveIn& known, SourcePosition position) {
  auto found = current_.find(variable);
  if (found != current_.end()) return found->second;
  Node node;
  node.op = "variable";
  node.info = known.info;
  node.position = std::move(position);
  node.SetAttribute("name", variable);
  const NodeId id = AddInferred(std::move(node));
  values_.back() = known.value;
  current_.emplace(variable, id);
  live_in_.emplace(variable, id);
  return id;
}

NodeId BlockBuilder::Add(std::string op, std::vector<NodeId> inputs, SourcePosition position,
                         std::vector<std::pair<std::string, Scalar>> attributes) {
  Node node;
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.position = std::move(position);
  for (auto& [name, value] : attributes) node.SetAttribute(name, std::move(value));
  const ops::Operator* description = ops::FindOperator(node.op);
  const bool ordered = description != nullptr && (description->effect || description->may_fail);
  if (ordered && last_ordered_ != kNoNode) node.after.push_back(last_ordered_);
  const NodeId id = AddInferred(std::move(node));
  if (ordered) last_ordered_ = id;
  return id;
}

void BlockBuilder::Assign(const std::string& variable, NodeId node, SourcePosition position) {
  current_[variable] = node;
  if (assigned_names_.insert(variable).second) assigned_.emplace_back(variable, std::move(position));
}

Graph BlockBuilder::Finish() {
  for (auto& [variable, position] : assigned_) {
    const NodeId value = current_.at(variable);
    auto own = live_in_.find(variable);
    if (own != live_in_.end() && own->second == value) continue;  // x = x
    Node node;
    node.op = "assign";
    node.inputs.push_back(value);
    node.position = std::move(position);
    node.SetAttribute("name", variable);
    AddInferred(std::move(node));
  }
  Graph graph = std::move(graph_);
  *this = BlockBuilder();
  return graph;
}

}  // namespace heddle::compiler
