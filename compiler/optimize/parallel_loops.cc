// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/parallel_loops.h"

#include <algorithm>
#include <set>
#include <string>

#include "compiler/optimize/pass.h"
#include "core/programs/for_each_block.h"

namespace heddle::compiler {
namespace {

bool MayRunBeside(const std::vector<Block>& blocks, const Program& program, std::string_view op,
                  std::set<std::string>* seen) {
  bool runs = false;
  ForEachBlock(blocks, [&](const Block& block) {
    if (runs) return false;
    runs = (block.kind == Block::Kind::kList && op == Name(block.operation)) ||
           std::any_of(block.graph.nodes.begin(), block.graph.nodes.end(),
                       [op](const Node& node) { return node.Is(op); });
    ForEachCallee(block, [&](const std::string& name, const auto&) {
      if (runs || !seen->insert(name).second) return;
      const auto function = program.functions.find(name);
      runs = function == program.functions.end() || MayRunBeside(function->second.body, program, op, seen);
    });
    return !runs;
  });
  return runs;
}

}  // namespace

bool MayRun(const std::vector<Block>& blocks, const Program& program, std::string_view op) {
  std::set<std::string> seen;
  return MayRunBeside(blocks, program, op, &seen);
}

void OrderLoopsThatWrite(Program* program) {
  ForEachBlock(*program, [&](Block& block) {
    if (!block.independent || !MayRun(block.body, *program, "write")) return;
    block.independent = false;
    block.in_order = "they write files";
  });
}

}  // namespace heddle::compiler
