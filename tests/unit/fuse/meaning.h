// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/programs/fused_operator.h"
#include "core/programs/graph.h"
#include "tests/unit/fuse/without_phases.h"

namespace heddle::compiler {

/// What the sinks of a graph (assignments, effects, whatever nobody reads) compute, as one number per
/// distinct computation. Fused operators and operators of phases count as the bodies they hold, so a graph
/// and any fusion of it agree, whatever is shared or computed twice.
class Meaning {
 public:
  /// "name:number" of every assignment, then "op:number" of every other sink, sorted.
  std::vector<std::string> Of(const Graph& with_phases) {
    const Graph graph = WithoutPhases(with_phases);
    std::vector<int> numbers(graph.nodes.size());
    std::map<NodeId, std::vector<int>> results;  // Of multi-aggregates.
    std::vector<bool> read(graph.nodes.size(), false);
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph[id];
      std::vector<int> inputs;
      for (NodeId input : node.inputs) {
        inputs.push_back(input == kNoNode ? -1 : numbers[static_cast<size_t>(input)]);
        if (input != kNoNode) read[static_cast<size_t>(input)] = true;
      }
      for (NodeId earlier : node.after) read[static_cast<size_t>(earlier)] = true;
      if (IsFused(node)) {
        results[id] = OfFused(node, inputs);
        numbers[static_cast<size_t>(id)] = results[id].size() == 1 ? results[id][0] : -2;
      } else if (node.Is("result") && results.contains(node.inputs[0])) {
        numbers[static_cast<size_t>(id)] = results[node.inputs[0]].at(node.ResultIndex());
      } else {
        numbers[static_cast<size_t>(id)] = Number(node, inputs, graph);
      }
    }
    std::vector<std::string> sinks;
    for (NodeId id = 0; id < graph.size(); ++id)
      if (!read[static_cast<size_t>(id)] && !graph[id].Is("literal") && !graph[id].Is("variable"))
        sinks.push_back((graph[id].Is("assign") ? graph[id].Text("name") : graph[id].op) + ":" +
                        std::to_string(numbers[static_cast<size_t>(id)]));
    std::sort(sinks.begin(), sinks.end());
    return sinks;
  }

 private:
  std::vector<int> OfFused(const Node& node, const std::vector<int>& inputs) {
    const FusedOperator* const fused = node.fused.get();
    EXPECT_TRUE(Verify(*fused).ok()) << Verify(*fused).ToString();
    std::vector<int> numbers;
    for (const Node& inner : fused->body.nodes) {
      std::vector<int> operands;
      for (NodeId input : inner.inputs)
        operands.push_back(input == kNoNode ? -1 : numbers[static_cast<size_t>(input)]);
      numbers.push_back(inner.Is("variable") ? inputs.at(std::stoul(inner.Text("name")))
                                             : Number(inner, operands, fused->body));
    }
    std::vector<int> roots;
    for (NodeId root : fused->roots) roots.push_back(numbers[static_cast<size_t>(root)]);
    return roots;
  }

  int Number(const Node& node, std::vector<int> inputs, const Graph& graph) {
    std::string key = node.op;
    if (node.Is("index") && inputs.size() == 5 && node.inputs[1] == kNoNode && node.inputs[3] != kNoNode &&
        graph[node.inputs[3]].Is("literal")) {
      // The upper bound follows from the shape; inside fused operators it is a literal.
      key += " from " + std::to_string(graph[node.inputs[3]].FindAttribute("value")->AsInteger()) +
             " width " + std::to_string(node.info.shape.columns);
      inputs.resize(1);
    }
    for (int input : inputs) key += " " + std::to_string(input);
    for (const auto& [name, value] : node.attributes) key += " " + name + "=" + value.ToLiteral();
    key += fmt::format(" {} {} {}", Name(node.info.data_type), node.info.shape, Name(node.info.format));
    return numbers_.emplace(key, static_cast<int>(numbers_.size())).first->second;
  }

  std::map<std::string, int> numbers_;
};

}  // namespace heddle::compiler
