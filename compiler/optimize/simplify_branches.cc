// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <optional>

#include "compiler/optimize/pass.h"

namespace heddle::compiler {
namespace {

// The value of a predicate that is a literal and does nothing else.
std::optional<bool> LiteralPredicate(const Graph& graph) {
  if (graph.size() != 2 || !graph[0].Is("literal") || !graph[1].Is("assign")) return std::nullopt;
  const Scalar& value = *graph[0].FindAttribute("value");
  if (value.IsString()) return std::nullopt;  // an error of the run
  return value.AsBoolean();
}

void Simplify(std::vector<Block>* blocks) {
  std::vector<Block> result;
  for (Block& block : *blocks) {
    Simplify(&block.body);
    Simplify(&block.otherwise);
    const bool has_predicate = block.kind == Block::Kind::kIf || block.kind == Block::Kind::kWhile;
    const std::optional<bool> predicate = has_predicate ? LiteralPredicate(block.graph) : std::nullopt;
    if (predicate && block.kind == Block::Kind::kIf) {
      std::vector<Block>& taken = *predicate ? block.body : block.otherwise;
      std::move(taken.begin(), taken.end(), std::back_inserter(result));
    } else if (!(predicate == false && block.kind == Block::Kind::kWhile)) {
      result.push_back(std::move(block));
    }
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
