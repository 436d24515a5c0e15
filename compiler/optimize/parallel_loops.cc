// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/parallel_loops.h"

#include <algorithm>
#include <set>
#include <string>

#include "compiler/optimize/pass.h"

namespace heddle::compiler {
namespace {

bool MayRunBeside(const std::vector<Block>& blocks, const Program& program, std::string_view op,
                  std::set<std::string>* seen) {
  return std::any_of(blocks.begin(), blocks.end(), [&](const Block& block) {
    bool runs = block.kind == Block::Kind::kList && op == Name(block.operation);
    ForEachCallee(block, [&](const std::string& name, const auto&) {
      if (!seen->insert(name).second) return;
      const auto function = program.functions.find(name);
      runs = runs || function == program.functions.end() ||
             MayRunBeside(function->second.body, program, op, seen);
    });
    return runs ||
           std::any_of(block.graph.nodes.begin(), block.graph.nodes.end(),
                       [op](const Node& node) { return node.Is(op); }) ||
           MayRunBeside(block.body, program, op, seen) || MayRunBeside(block.otherwise, program, op, seen);
  });
}

}  // namespace

bool MayRun(const std::vector<Block>& blocks, const Program& program, std::string_view op) {
  std::set<std::string> seen;
  return MayRunBeside(blocks, program, op, &seen);
}

void OrderLoopsThatWrite(Program* program) {
  ForEachBlock(program, [&](Block& block) {
    if (!block.independent || !MayRun(block.body, *program, "write")) return;
    block.independent = false;
    block.in_order = "they write files";
  });
}

}  // namespace heddle::compiler
