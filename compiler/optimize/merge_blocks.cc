// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"

namespace heddle::compiler {
namespace {

// The blocks of a run of straight-line blocks, appended to each other: what one assigns and a later one reads
// is an edge, only the last assignment of a variable is left, and what acts or may fail stays in the order of
// the script.
class Merger {
 public:
  void Append(Graph next) {
    const size_t count = next.nodes.size();
    std::vector<NodeId> new_ids(count, kNoNode);
    const std::vector<NodeId> before = last_ordered_;
    std::vector<std::pair<std::string, NodeId>> assigned;  // what variables are behind this block
    for (size_t i = 0; i < count; ++i) {
      Node& node = next.nodes[i];
      if (node.Is("variable")) {
        const auto found = current_.find(node.Text("name"));
        new_ids[i] = found != current_.end() ? found->second : Add(std::move(node));
        continue;
      }
      for (NodeId& input : node.inputs)
        if (input != kNoNode) input = new_ids[static_cast<size_t>(input)];
      if (node.Is("assign")) {
        assigned.emplace_back(node.Text("name"), node.inputs[0]);
        assigns_[node.Text("name")] = std::move(node);
        continue;
      }
      for (NodeId& earlier : node.after) earlier = new_ids[static_cast<size_t>(earlier)];
      if (node.after.empty() && IsOrdered(node)) node.after = before;
      new_ids[i] = Add(std::move(node));
    }
    for (auto& [name, id] : assigned) current_[std::move(name)] = id;
  }

  Graph Finish() {
    for (auto& [name, node] : assigns_) graph_.Add(std::move(node));
    return std::move(graph_);
  }

 private:
  NodeId Add(Node node) {
    const bool is_ordered = IsOrdered(node);
    for (const NodeId earlier : node.after) std::erase(last_ordered_, earlier);
    const NodeId id = graph_.Add(std::move(node));
    if (is_ordered) last_ordered_.push_back(id);
    return id;
  }

  Graph graph_;
  std::map<std::string, NodeId, std::less<>> current_;  // what variables are behind the blocks so far
  std::map<std::string, Node> assigns_;
  std::vector<NodeId> last_ordered_;  // ordered nodes that no other one comes after
};

bool CanMerge(const Block& block) {
  return block.kind == Block::Kind::kBasic &&
         std::none_of(block.graph.nodes.begin(), block.graph.nodes.end(),
                      [](const Node& node) { return node.inputs.empty() && TellsTime(node.op); });
}

void MergeSequence(std::vector<Block>& blocks) {
  std::vector<Block> result;
  for (size_t i = 0; i < blocks.size();) {
    size_t end = i + 1;
    if (CanMerge(blocks[i]))
      while (end < blocks.size() && CanMerge(blocks[end])) ++end;
    result.push_back(std::move(blocks[i]));
    if (end - i > 1) {
      Merger merger;
      merger.Append(std::move(result.back().graph));
      for (size_t j = i + 1; j < end; ++j) merger.Append(std::move(blocks[j].graph));
      result.back().graph = merger.Finish();
    }
    i = end;
  }
  blocks = std::move(result);
}

}  // namespace

// What an earlier block has compressed is read through where a later one of the same run reads it.
Status MergeBlocks(Program* program) {
  ForEachSequence(program, MergeSequence);
  return ReadThroughStorage(program);
}

}  // namespace heddle::compiler
