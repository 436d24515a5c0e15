// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "core/programs/program.h"

// Going through the control flow of a program, in the order of the text.
namespace heddle {

/// Calls visit(block) for each of the blocks and all within them, the outer one first. Where `visit` returns
/// a bool, false leaves out what is within the block.
template <typename AnyBlock, typename Visit>
void ForEachBlock(AnyBlock& block,
                  const Visit& visit) requires std::is_same_v<std::remove_const_t<AnyBlock>, Block> {
  if constexpr (std::is_same_v<std::invoke_result_t<const Visit&, AnyBlock&>, bool>) {
    if (!visit(block)) return;
  } else {
    visit(block);
  }
  ForEachBlock(block.body, visit);
  ForEachBlock(block.otherwise, visit);
}
template <typename Visit>
void ForEachBlock(std::vector<Block>& blocks, const Visit& visit) {
  for (Block& block : blocks) ForEachBlock(block, visit);
}
template <typename Visit>
void ForEachBlock(const std::vector<Block>& blocks, const Visit& visit) {
  for (const Block& block : blocks) ForEachBlock(block, visit);
}
/// Of the main program, then of the functions in the order of their names.
template <typename AnyProgram, typename Visit>
void ForEachBlock(AnyProgram& program,
                  const Visit& visit) requires std::is_same_v<std::remove_const_t<AnyProgram>, Program> {
  ForEachBlock(program.main, visit);
  for (auto& [name, function] : program.functions) ForEachBlock(function.body, visit);
}

/// Calls visit(name) for each variable that a block itself gives a value: its graph, its results, the
/// variable of a loop.
template <typename Visit>
void ForEachAssigned(const Block& block, const Visit& visit) {
  for (const Node& node : block.graph.nodes)
    if (node.Is("assign")) visit(node.Text("name"));
  for (const std::string& result : block.results)
    if (!result.empty()) visit(result);
  if (!block.variable.empty()) visit(block.variable);
}

}  // namespace heddle
