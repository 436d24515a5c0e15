// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/pass.h"
#include "compiler/optimize/storage.h"
#include "ops/base/operator.h"

namespace heddle::compiler {

bool ChangesStorage(const Node& node) {
  const ops::Operator* const op = ops::FindOperator(node.op);
  return op != nullptr && op->form == ops::CallForm::kSame;
}

bool Compresses(const Node& node) {
  const ops::Operator* const op = ops::FindOperator(node.op);
  return op != nullptr && op->form == ops::CallForm::kSame && op->results == 2;
}

// Rules, fusion and the order of products then see the graph that the script has without compress(), so that
// no bit depends on it; and the cells that it is made from are there anyway. What is left are assignments:
// variables hold column groups, and the blocks behind read those.
Result<Graph> ReadThroughStorage(Graph graph, const PassOptions&) {
  const auto source_of = [&](NodeId input) {
    while (input != kNoNode && ChangesStorage(graph[input])) input = graph[input].inputs[0];
    return input;
  };
  for (Node& node : graph.nodes) {
    if (node.Is("assign")) continue;
    for (NodeId& input : node.inputs) input = source_of(input);
  }
  return graph;
}

}  // namespace heddle::compiler
