// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "compiler/optimize/loop_range.h"
#include "compiler/optimize/pass.h"

namespace heddle::compiler {
namespace {

bool IsRemoved(const Block& block) {
  switch (block.kind) {
    case Block::Kind::kWhile: {
      const Scalar* predicate = AssignedNumber(block.graph, Block::kPredicate);
      return predicate != nullptr && !predicate->AsBoolean();
    }
    case Block::Kind::kFor:
    case Block::Kind::kParallelFor: {
      const std::optional<LoopRange> range = RangeOf(block);
      return range && range->is_empty;
    }
    default: return false;
  }
}

void Simplify(std::vector<Block>* blocks) {
  std::vector<Block> result;
  for (Block& block : *blocks) {
    Simplify(&block.body);
    Simplify(&block.otherwise);
    if (block.kind == Block::Kind::kIf) {
      if (const Scalar* predicate = AssignedNumber(block.graph, Block::kPredicate)) {
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
