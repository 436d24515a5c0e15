// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/split_sums.h"

#include <algorithm>
#include <utility>

#include "compiler/optimize/pass.h"
#include "core/programs/for_each_block.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

bool IsOneOf(std::span<const std::string> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsOfSum(const Node& node, std::span<const std::string> sums) {
  return (node.Is("variable") || node.Is("assign")) && IsOneOf(sums, node.Text("name"));
}

// Blocks of a loop's body that add to its sums become two.
void SplitBlocks(std::vector<Block>* blocks, std::span<const std::string> sums, NewBlocks* made) {
  std::vector<Block> result;
  for (Block& block : *blocks) {
    SplitBlocks(&block.body, sums, made);
    SplitBlocks(&block.otherwise, sums, made);
    if (block.kind != Block::Kind::kBasic || !TouchesSums(block.graph, sums)) {
      result.push_back(std::move(block));
      continue;
    }
    SplitGraph split = SplitGraphAtSums(block.graph, sums);
    if (split.first.nodes.empty()) {
      result.push_back(std::move(block));
      continue;
    }
    Block adding = made->Make(Block::Kind::kBasic, block.position);
    adding.graph = std::move(split.adding);
    block.graph = std::move(split.first);
    result.push_back(std::move(block));
    result.push_back(std::move(adding));
  }
  *blocks = std::move(result);
}

}  // namespace

Status SplitSums(Program* program) {
  NewBlocks made(program);
  ForEachBlock(*program, [&](Block& loop) {
    if (loop.independent && !loop.sums.empty()) SplitBlocks(&loop.body, loop.sums, &made);
  });
  return OkStatus();
}

bool OnlyAdds(const Graph& graph, std::span<const std::string> sums) {
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    const ops::Operator* const op = ops::FindOperator(node.op);
    return node.Is("assign") ? IsOfSum(node, sums) : op == nullptr || !op->effect;
  });
}

bool TouchesSums(const Graph& graph, std::span<const std::string> sums) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& node) { return IsOfSum(node, sums); });
}

SplitGraph SplitGraphAtSums(const Graph& graph, std::span<const std::string> sums) {
  const auto count = static_cast<size_t>(graph.size());
  std::vector<bool> adds(count, false);
  bool computes = false;
  bool has_added = false;
  for (size_t i = 0; i < count; ++i) {
    const Node& node = graph.nodes[i];
    const auto depends = [&](NodeId id) { return id != kNoNode && adds[static_cast<size_t>(id)]; };
    adds[i] = IsOfSum(node, sums) || std::any_of(node.inputs.begin(), node.inputs.end(), depends) ||
              std::any_of(node.after.begin(), node.after.end(), depends);
    // What can be seen stays behind what may fail before it.
    const ops::Operator* const op = ops::FindOperator(node.op);
    adds[i] = adds[i] || (has_added && op != nullptr && (op->effect || op->may_fail));
    has_added |= adds[i] && !node.Is("variable");
    computes |= !adds[i] && !node.Is("variable") && !node.Is("literal");
  }
  SplitGraph split;
  if (!computes) {
    split.adding = graph;
    return split;
  }

  std::vector<NodeId> first_ids(count, kNoNode);
  std::vector<NodeId> adding_ids(count, kNoNode);
  const auto append = [&](Graph* part, std::vector<NodeId>* ids, size_t i, Node node) {
    for (NodeId& input : node.inputs)
      if (input != kNoNode) input = (*ids)[static_cast<size_t>(input)];
    // What comes before it in the other part has happened.
    std::vector<NodeId> after;
    for (const NodeId before : node.after)
      if ((*ids)[static_cast<size_t>(before)] != kNoNode)
        after.push_back((*ids)[static_cast<size_t>(before)]);
    node.after = std::move(after);
    (*ids)[i] = part->Add(std::move(node));
  };
  // What `first` computes comes over by a variable, a literal as it is.
  const auto bring = [&](NodeId id) {
    const auto i = static_cast<size_t>(id);
    const Node& node = graph.nodes[i];
    if (adding_ids[i] != kNoNode) return;
    if (node.Is("literal")) return append(&split.adding, &adding_ids, i, node);
    const std::string name = fmt::format("%sum{}", id);
    Node assign;
    assign.op = "assign";
    assign.inputs = {first_ids[i]};
    assign.info = node.info;
    assign.position = node.position;
    assign.SetAttribute("name", name);
    split.first.Add(std::move(assign));
    Node variable;
    variable.op = "variable";
    variable.info = node.info;
    variable.position = node.position;
    variable.SetAttribute("name", name);
    adding_ids[i] = split.adding.Add(std::move(variable));
  };
  for (size_t i = 0; i < count; ++i)
    if (!adds[i]) append(&split.first, &first_ids, i, graph.nodes[i]);
  for (size_t i = 0; i < count; ++i) {
    if (!adds[i]) continue;
    for (const NodeId input : graph.nodes[i].inputs)
      if (input != kNoNode && !adds[static_cast<size_t>(input)]) bring(input);
    append(&split.adding, &adding_ids, i, graph.nodes[i]);
  }
  return split;
}

}  // namespace heddle::compiler
