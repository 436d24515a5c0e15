// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/optimize/pass.h"
#include "compiler/optimize/storage.h"
#include "core/programs/for_each_block.h"
#include "ops/base/operator.h"

namespace heddle::compiler {

bool ChangesStorage(const Node& node) {
  const ops::Operator* const op = ops::FindOperator(node.op);
  return op != nullptr && op->form == ops::CallForm::kSame;
}

bool Compresses(const Node& node) {
  const ops::Operator* const op = ops::FindOperator(node.op);
  return op != nullptr && op->form == ops::CallForm::kSame && op->results == 2;
}

// Rules, fusion and the order of products then see the graph that the script has without compress(), so that
// no bit depends on it; and the cells that it is made from are there anyway. What is left are assignments:
// variables hold column groups, and the blocks behind read those.
//
// In functions that call themselves no variable does: how they run, by structure and in batches, follows from
// their operators (docs/recursion.md).
Status ReadThroughStorage(Program* program) {
  const auto read_through = [](Graph& graph, bool stores) {
    const auto source_of = [&](NodeId input) {
      while (input != kNoNode && ChangesStorage(graph[input])) input = graph[input].inputs[0];
      return input;
    };
    for (Node& node : graph.nodes) {
      if (node.Is("assign") && stores) continue;
      for (NodeId& input : node.inputs) input = source_of(input);
    }
  };
  ForEachBlock(program->main, [&](Block& block) { read_through(block.graph, true); });
  for (auto& [name, function] : program->functions) {
    // Hardly any function changes the storage of anything; for the others nobody follows calls.
    bool changes_any = false;
    ForEachBlock(function.body, [&](const Block& block) {
      changes_any =
          changes_any || std::any_of(block.graph.nodes.begin(), block.graph.nodes.end(), ChangesStorage);
    });
    if (!changes_any) continue;
    const bool stores = !CallsItself(*program, name);
    ForEachBlock(function.body, [&](Block& block) { read_through(block.graph, stores); });
  }
  return OkStatus();
}

}  // namespace heddle::compiler
