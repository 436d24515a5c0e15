// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/programs/phased_operator.h"

namespace heddle::compiler {

/// The graph with the operators of each "phased" in its place.
inline Graph WithoutPhases(const Graph& graph) {
  Graph flat;
  std::vector<NodeId> new_id;
  std::map<NodeId, std::vector<NodeId>> results;  // By node "phased".
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = graph[id];
    if (node.Is("result") && results.contains(node.inputs[0])) {
      new_id.push_back(results[node.inputs[0]].at(node.ResultIndex()));
      continue;
    }
    for (std::vector<NodeId>* list : {&node.inputs, &node.after})
      for (NodeId& other : *list)
        if (other != kNoNode) other = new_id[static_cast<size_t>(other)];
    if (!node.Is("phased")) {
      new_id.push_back(flat.Add(std::move(node)));
      continue;
    }
    const std::string text = node.phased->ToText();
    const Result<PhasedOperator> phased = PhasedOperator::Parse(text);
    EXPECT_TRUE(phased.ok() && Verify(*phased).ok()) << text;
    if (!phased.ok()) return flat;
    EXPECT_EQ(phased->ToText(), text);
    std::vector<NodeId> inside;
    for (Node inner : phased->body.nodes) {
      if (inner.Is("variable")) {
        inside.push_back(node.inputs.at(static_cast<size_t>(std::stoi(inner.Text("name")))));
        continue;
      }
      for (NodeId& input : inner.inputs)
        if (input != kNoNode) input = inside[static_cast<size_t>(input)];
      // What comes before all of them comes before each.
      if (!inner.Is("literal") && !inner.Is("result")) inner.after = node.after;
      inside.push_back(flat.Add(std::move(inner)));
    }
    for (const NodeId root : phased->roots) results[id].push_back(inside[static_cast<size_t>(root)]);
    new_id.push_back(results[id].front());  // What comes behind it comes behind a result.
  }
  return flat;
}

}  // namespace heddle::compiler
