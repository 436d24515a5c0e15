// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "compiler/optimize/infer.h"
#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"

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

Result<Graph> FoldConstants(Graph graph, const PassOptions&) {
  std::vector<std::pair<NodeId, Status>> ignored;  // The static pass has reported them.
  const InferOutcome outcome = InferShapes(graph, LiveInsOf(graph), nullptr, &ignored);
  std::vector<NodeId> itself(graph.nodes.size());
  std::iota(itself.begin(), itself.end(), 0);
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node& node = graph[id];
    const std::optional<Scalar>& value = outcome.values[static_cast<size_t>(id)];
    if (!value || node.Is("literal") || node.Is("assign")) continue;
    node.op = "literal";
    node.inputs.clear();
    node.attributes.clear();
    node.SetAttribute("value", *value);
    node.info = ValueInfo::OfScalar(value->type());
  }
  return Compact(std::move(graph), itself, std::vector<bool>(itself.size(), true));
}

}  // namespace heddle::compiler
