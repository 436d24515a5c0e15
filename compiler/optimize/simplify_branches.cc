// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"

namespace heddle::compiler {
namespace {

// The literal that `name` is assigned by a graph that does nothing else that shows.
const Scalar* AssignedLiteral(const Graph& graph, std::string_view name) {
  const Scalar* value = nullptr;
  for (const Node& node : graph.nodes) {
    if (IsOrdered(node)) return nullptr;
    if (node.Is("assign") && node.Text("name") == name) value = graph[node.inputs[0]].FindAttribute("value");
  }
  return value == nullptr || value->IsString() ? nullptr : value;  // a string is an error of the run
}

// True if seq(from, to, increment) has nothing to run over.
bool IsEmptyLoop(const Block& block) {
  if (!block.has_increment) return false;  // from:to counts down where it cannot count up
  const Scalar* from = AssignedLiteral(block.graph, Block::kFrom);
  const Scalar* to = AssignedLiteral(block.graph, Block::kTo);
  const Scalar* increment = AssignedLiteral(block.graph, Block::kIncrement);
  for (const Scalar* bound : {from, to, increment})
    if (bound == nullptr || !bound->IsInteger()) return false;
  const int64_t step = increment->AsInteger();
  return step > 0 ? from->AsInteger() > to->AsInteger() : step < 0 && from->AsInteger() < to->AsInteger();
}

bool IsRemoved(const Block& block) {
  switch (block.kind) {
    case Block::Kind::kWhile: {
      const Scalar* predicate = AssignedLiteral(block.graph, Block::kPredicate);
      return predicate != nullptr && !predicate->AsBoolean();
    }
    case Block::Kind::kFor:
    case Block::Kind::kParallelFor: return IsEmptyLoop(block);
    default: return false;
  }
}

void Simplify(std::vector<Block>* blocks) {
  std::vector<Block> result;
  for (Block& block : *blocks) {
    Simplify(&block.body);
    Simplify(&block.otherwise);
    if (block.kind == Block::Kind::kIf) {
      if (const Scalar* predicate = AssignedLiteral(block.graph, Block::kPredicate)) {
        std::vector<Block>& taken = predicate->AsBoolean() ? block.body : block.otherwise;
        std::move(taken.begin(), taken.end(), std::back_inserter(result));
        continue;
      }
    }
    if (!IsRemoved(block)) result.push_back(std::move(block));
  }
  *blocks = std::move(result);
}

}  // namespace

Status SimplifyBranches(Program* program) {
  Simplify(&program->main);
  for (auto& [name, function] : program->functions) Simplify(&function.body);
  return OkStatus();
}

}  // namespace heddle::compiler
