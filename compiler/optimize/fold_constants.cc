// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "compiler/optimize/infer.h"
#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"
#include "ops/base/operator.h"
#include "ops/scalar/declared_type.h"

namespace heddle::compiler {
namespace {

// What is known of live-ins: their types, and their sizes as far as these are the same on every way to the
// block.
LiveIns LiveInsOf(const Graph& graph) {
  LiveIns live_in;
  for (const Node& node : graph.nodes)
    if (node.Is("variable")) live_in[node.Text("name")] = {node.info, std::nullopt};
  return live_in;
}

}  // namespace

Result<Graph> FoldConstants(Graph graph, const PassOptions& options) {
  const NodesBefore before(graph);
  const LiveIns live_in = LiveInsOf(graph);
  std::vector<std::pair<NodeId, Status>> ignored;  // The static pass has reported them.
  InferOutcome outcome = InferShapes(std::move(graph), live_in, nullptr, &ignored);
  graph = std::move(outcome.graph);
  std::vector<NodeId> stands_for(graph.nodes.size());
  std::iota(stands_for.begin(), stands_for.end(), 0);
  std::vector<NodeId> known;  // what becomes a literal
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    const bool has_value = outcome.values[static_cast<size_t>(id)].has_value();
    // What eval() returns is made a matrix only where it is none.
    if (ops::HasRole(node, ops::Role::kAsMatrix) && node.FindAttribute("eval") != nullptr &&
        graph[node.inputs[0]].info.IsMatrix())
      stands_for[static_cast<size_t>(id)] = node.inputs[0];
    if (ops::HasRole(node, ops::Role::kAsDeclared) && !has_value) {
      const ValueInfo& given = graph[node.inputs[0]].info;
      if (given.IsScalar() && ops::IsAsDeclared(node, given.value_type))
        stands_for[static_cast<size_t>(id)] = node.inputs[0];
      continue;
    }
    if (has_value && !node.Is("literal") && !node.Is("assign")) known.push_back(id);
  }
  before.Restore(&graph);
  for (const NodeId id : known) {
    Node& node = graph[id];
    const Scalar& value = *outcome.values[static_cast<size_t>(id)];
    const ops::Operator* op = ops::FindOperator(node.op);
    if (options.sizes_matter != nullptr && op != nullptr && op->size_of != nullptr)
      *options.sizes_matter = true;
    node.op = "literal";
    node.inputs.clear();
    node.attributes.clear();
    node.SetAttribute("value", value);
    node.info = ValueInfo::OfScalar(value.type());
  }
  return Compact(std::move(graph), stands_for, std::vector<bool>(stands_for.size(), true));
}

}  // namespace heddle::compiler
