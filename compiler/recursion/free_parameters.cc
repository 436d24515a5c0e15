// SPDX-License-Identifier: Apache-2.0
#include "compiler/recursion/free_parameters.h"

#include <algorithm>

#include "compiler/recursion/recognise.h"
#include "compiler/recursion/structure_operators.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

// Whether the value of a number that the operator reads is in no size of its result.
bool GivesNoSize(const Node& node) {
  const ops::Role role = ops::RoleOf(node);
  if (role == ops::Role::kAsDeclared) return false;
  return ops::KindOf(node) == ops::OperatorKind::kCells || role == ops::Role::kAsMatrix ||
         StructureOperatorOf(node);
}

// Follows one parameter.
class Follower {
 public:
  explicit Follower(const std::string& parameter) : made_({parameter}) {}

  bool IsFree(const Function& function) {
    size_t before = 0;
    while (is_free_ && before != made_.size()) {
      before = made_.size();
      Follow(function.body);
    }
    return is_free_;
  }

 private:
  void Follow(const std::vector<Block>& blocks) {
    for (const Block& block : blocks) {
      FollowGraph(block.graph);
      if (block.kind == Block::Kind::kList && made_.contains(ArgumentOf(block, "from"))) is_free_ = false;
      // A counter is as many numbers as the bounds say.
      if (block.kind == Block::Kind::kFor &&
          (made_.contains(Block::kFrom) || made_.contains(Block::kIncrement)))
        made_.insert(block.variable);
      Follow(block.body);
      Follow(block.otherwise);
    }
  }

  void FollowGraph(const Graph& graph) {
    std::vector<bool> is_made(graph.nodes.size(), false);
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph[id];
      if (node.Is("variable")) {
        is_made[static_cast<size_t>(id)] = made_.contains(node.Text("name"));
        continue;
      }
      const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
        return input != kNoNode && is_made[static_cast<size_t>(input)];
      });
      if (!reads) continue;
      if (node.Is("assign")) {
        made_.insert(node.Text("name"));
      } else if (!GivesNoSize(node)) {
        is_free_ = false;
      } else {
        // Of a matrix only the cells depend on it.
        is_made[static_cast<size_t>(id)] = !node.info.IsMatrix();
      }
    }
  }

  Names made_;  // Variables that its value is in.
  bool is_free_ = true;
};

}  // namespace

Names FreeParameters(const Function& function) {
  Names free;
  for (const Parameter& parameter : function.parameters)
    if (parameter.data_type == DataType::kScalar && parameter.value_type != ValueType::kString &&
        parameter.value_type != ValueType::kUnknown && Follower(parameter.name).IsFree(function))
      free.insert(parameter.name);
  return free;
}

}  // namespace heddle::compiler
