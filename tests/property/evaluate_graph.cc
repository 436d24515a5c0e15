// SPDX-License-Identifier: Apache-2.0
#include "tests/property/evaluate_graph.h"

#include <gtest/gtest.h>

#include <map>

#include "ops/base/kernel.h"

namespace heddle::compiler::testing_support {

Variables EvaluateGraph(const Graph& graph, const Variables& live_in) {
  Variables assigned;
  std::vector<Value> values(graph.nodes.size());
  std::map<NodeId, std::vector<Value>> tuples;
  ops::KernelContext context;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    Value& value = values[static_cast<size_t>(id)];
    if (node.Is("literal")) {
      value = Value(*node.FindAttribute("value"));
    } else if (node.Is("variable")) {
      value = live_in.find(node.Text("name"))->second;
    } else if (node.Is("assign")) {
      assigned[node.Text("name")] = values[static_cast<size_t>(node.inputs[0])];
    } else if (node.Is("result")) {
      value = tuples[node.inputs[0]][node.ResultIndex()];
    } else {
      std::vector<const Value*> inputs;
      std::vector<ValueInfo> infos;
      for (const NodeId input : node.inputs) {
        inputs.push_back(input == kNoNode ? nullptr : &values[static_cast<size_t>(input)]);
        infos.push_back(input == kNoNode ? ValueInfo() : graph[input].info);
      }
      std::vector<Value> results(ResultsOf(node).size());
      const Status status = ops::CatalogKernels().Run(
          {.node = node, .phase = Phase::kWhole, .inputs = inputs, .input_infos = infos, .context = context},
          results);
      if (!status.ok()) {
        ADD_FAILURE() << node.op << ": " << status.ToString();
        return {};
      }
      value = results[0];
      if (node.info.IsTuple()) tuples[id] = std::move(results);
    }
  }
  return assigned;
}

}  // namespace heddle::compiler::testing_support
