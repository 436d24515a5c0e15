// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/variable_copies.h"

#include <algorithm>

#include "core/programs/for_each_block.h"

namespace heddle::engine {

LoopReuse ReuseOf(const Graph& graph, const PlaceInProgram& place) {
  LoopReuse reuse;
  if (place.loop == nullptr) return reuse;
  std::set<std::string> changing, assigned;
  ForEachBlock(place.loop->body, [&](const Block& block) {
    ForEachAssigned(block, [&](const std::string& name) { changing.insert(name); });
  });
  for (const Node& node : graph.nodes)
    if (node.Is("assign")) assigned.insert(node.Text("name"));
  const std::vector<std::string>& dead = place.block->dead_after;
  for (const Node& node : graph.nodes) {
    if (!node.Is("variable") || !node.info.IsTabular()) continue;
    const std::string& name = node.Text("name");
    if (assigned.contains(name) || name.starts_with('%')) continue;  // Those of the engine last no round.
    if (!changing.contains(name)) {
      reuse.lasting.insert(name);
      reuse.kept.insert(name);
    } else if (place.block != place.loop && std::find(dead.begin(), dead.end(), name) == dead.end()) {
      reuse.kept.insert(name);
    }
  }
  return reuse;
}

std::map<std::string, std::vector<Distribution>> CopiesIn(const Graph& graph, const VariableTable& frame) {
  std::map<std::string, std::vector<Distribution>> copies;
  for (const Node& node : graph.nodes) {
    if (!node.Is("variable")) continue;
    const Variable* const variable = frame.Find(node.Text("name"));
    if (variable == nullptr || variable->copies.empty()) continue;
    std::vector<Distribution>& where = copies[node.Text("name")];
    where.clear();
    for (const VariableCopy& copy : variable->copies) where.push_back(copy.distribution);
  }
  return copies;
}

bool HasCopiesAt(const Variable& variable, const std::vector<Distribution>& where) {
  return std::ranges::equal(variable.copies, where, {}, &VariableCopy::distribution);
}

void DropCopies(VariableTable* frame) {
  for (auto& [name, variable] : frame->variables()) variable.copies.clear();
}

}  // namespace heddle::engine
