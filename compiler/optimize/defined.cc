// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/defined.h"

#include <algorithm>

namespace heddle::compiler {
namespace {

bool AreReadsDefined(const Graph& graph, const SharedNames& defined) {
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return !node.Is("variable") || defined.contains(node.Text("name"));
  });
}

}  // namespace

bool FollowDefined(const Block& block, SharedNames* defined) {
  bool is_safe = AreReadsDefined(block.graph, *defined);
  switch (block.kind) {
    case Block::Kind::kBasic:
      for (const Node& node : block.graph.nodes)
        if (node.Is("assign")) defined->insert(node.Text("name"));
      return is_safe;
    case Block::Kind::kCall:
    case Block::Kind::kList:
      ForEachArguments(block, [&](const auto& arguments) {
        for (const auto& [parameter, variable] : arguments) is_safe &= defined->contains(variable);
      });
      for (const std::string& name : {block.selector, block.first_argument})
        is_safe &= name.empty() || defined->contains(name);
      for (const std::string& name : block.results) defined->insert(name);
      return is_safe;
    case Block::Kind::kIf: {
      SharedNames otherwise = *defined;
      is_safe &= FollowDefined(block.body, defined);
      is_safe &= FollowDefined(block.otherwise, &otherwise);
      defined->KeepThoseOf(otherwise);
      return is_safe;
    }
    case Block::Kind::kWhile:
    case Block::Kind::kFor:
    case Block::Kind::kParallelFor: {  // may have no rounds
      SharedNames inside = *defined;
      if (!block.variable.empty()) inside.insert(block.variable);
      return FollowDefined(block.body, &inside) && is_safe;
    }
  }
  return false;
}

bool FollowDefined(const std::vector<Block>& blocks, SharedNames* defined) {
  bool is_safe = true;
  for (const Block& block : blocks) is_safe &= FollowDefined(block, defined);
  return is_safe;
}

}  // namespace heddle::compiler
