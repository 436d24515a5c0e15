// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "compiler/optimize/pass.h"
#include "compiler/optimize/storage.h"
#include "core/programs/for_each_block.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

struct Place {
  size_t block;
  NodeId node;
};

// Whether the operator makes the matrix from a frame, whose columns have few distinct cells.
bool EncodesFrame(const Graph& graph, const Node& node) {
  const ops::Operator* const op = ops::FindOperator(node.op);
  return op != nullptr && op->takes_frames && op->form != ops::CallForm::kSame && !node.inputs.empty() &&
         node.inputs[0] != kNoNode && graph[node.inputs[0]].info.IsFrame();
}

// The node that makes value `id`, its first result, from a frame.
std::optional<NodeId> MakerOf(const Graph& graph, NodeId id) {
  if (graph[id].Is("result")) {
    if (graph[id].FindAttribute("index")->AsDouble() != 0) return std::nullopt;
    id = graph[id].inputs[0];
  } else if (!graph[id].info.IsMatrix()) {
    return std::nullopt;
  }
  return EncodesFrame(graph, graph[id]) ? std::optional(id) : std::nullopt;
}

void Mark(const Node& compress, Node* maker) {
  maker->SetAttribute(kCompressed, Scalar(true));
  if (const Scalar* const reads = compress.FindAttribute("reads"); reads != nullptr)
    maker->SetAttribute("reads", *reads);
}

void MarkSequence(std::vector<Block>& blocks) {
  std::map<std::string, Place> makers;  // Of variables, in the blocks so far.
  for (size_t b = 0; b < blocks.size(); ++b) {
    const Graph& graph = blocks[b].graph;
    std::map<std::string, Place> made;
    for (const Node& node : graph.nodes) {
      if (Compresses(node)) {
        const Node& input = graph[node.inputs[0]];
        std::optional<Place> place;
        if (const auto maker = MakerOf(graph, node.inputs[0])) place = Place{b, *maker};
        if (input.Is("variable"))
          if (const auto found = makers.find(input.Text("name")); found != makers.end())
            place = found->second;
        if (place) Mark(node, &blocks[place->block].graph.nodes[static_cast<size_t>(place->node)]);
      }
      if (!node.Is("assign")) continue;
      if (const auto maker = MakerOf(graph, node.inputs[0])) made[node.Text("name")] = {b, *maker};
    }
    ForEachBlock(blocks[b], [&](const Block& block) {
      ForEachAssigned(block, [&](const std::string& name) { makers.erase(name); });
    });
    if (blocks[b].kind == Block::Kind::kBasic) makers.merge(made);
  }
}

}  // namespace

Status CompressWhereMade(Program* program) {
  ForEachSequence(program, MarkSequence);
  return OkStatus();
}

}  // namespace heddle::compiler
