// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <unordered_map>

#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"
#include "ops/operator.h"

namespace heddle::compiler {
namespace {

// Equal keys: the same value. Literals are compared by their text form, which tells 0.0 from -0.0 and 1
// from 1.0.
std::string KeyOf(const Node& node, const std::vector<NodeId>& stands_for) {
  std::string key = node.op;
  for (NodeId input : node.inputs) {
    key += ' ';
    key += std::to_string(input == kNoNode ? kNoNode : stands_for[static_cast<size_t>(input)]);
  }
  for (const auto& [name, value] : node.attributes) {
    key += ' ';
    key += name;
    key += '=';
    key += value.ToLiteral();
  }
  return key;
}

bool CanShare(const Node& node) {
  if (node.Is("literal") || node.Is("variable") || node.Is("result")) return true;
  const ops::Operator* op = ops::FindOperator(node.op);
  return op != nullptr && op->pure && !op->effect;
}

}  // namespace

Result<Graph> ShareCommonSubexpressions(Graph graph, const PassOptions&) {
  std::vector<NodeId> stands_for(graph.nodes.size());
  std::unordered_map<std::string, NodeId> first;
  for (NodeId id = 0; id < graph.size(); ++id) {
    stands_for[static_cast<size_t>(id)] = id;
    const Node& node = graph[id];
    if (CanShare(node))
      stands_for[static_cast<size_t>(id)] = first.emplace(KeyOf(node, stands_for), id).first->second;
  }
  return Compact(std::move(graph), stands_for, std::vector<bool>(stands_for.size(), true));
}

}  // namespace heddle::compiler
