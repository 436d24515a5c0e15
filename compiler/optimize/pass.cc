// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/pass.h"

#include <algorithm>

#include "compiler/optimize/storage.h"
#include "compiler/optimize/verify_program.h"
#include "compiler/rules/rules.h"
#include "core/programs/for_each_block.h"

namespace heddle::compiler {
namespace {

constexpr Pass kPasses[] = {
    {"drop-unread", nullptr, DropUnreadValues, "first: on what the script names, not on what passes leave"},
    {"read-through-storage", nullptr, ReadThroughStorage,
     "before everything that looks at operators; again behind merge-blocks"},
    {"inline-functions", nullptr, InlineFunctions, "what is around a call is known in the function"},
    {"propagate-constants", nullptr, PropagateConstants, "settles predicates and sizes"},
    {"fold-constants", FoldConstants, nullptr, "turns predicates into literals"},
    {"simplify-branches", nullptr, SimplifyBranches, "after folding; leaves neighbours that can be merged"},
    {"vectorize-loops", nullptr, VectorizeLoops,
     "on loops as they are written, with bounds known; leaves straight-line code"},
    {"hoist", nullptr, HoistLoopInvariants, "before merging, which takes in what it leaves before the loops"},
    {"merge-blocks", nullptr, MergeBlocks, "before the graph rewrites, which see one block at a time"},
    {"cell-operands", PrepareCellOperands, nullptr,
     "so that rules, fusion and kernels see scalars and vectors as they take them"},
    {"sequences", ShareOutSequences, nullptr,
     "before dead nodes are removed, among them what no step of a layer is asked for"},
    {"rules", ApplyExactRules, nullptr, "exact algebra; exposes equal subgraphs and dead nodes"},
    {"order-rules", ApplyOrderRules, nullptr, "on what exact algebra left; before anything is fused"},
    {"order-products", OrderProducts, nullptr, "after the rules, which make and remove products"},
    {"share", ShareCommonSubexpressions, nullptr, "after everything that makes nodes equal"},
    {"remove-dead", RemoveDeadNodes, nullptr, "sweeps what the others left behind"},
    {"remove-unread", nullptr, RemoveUnreadAssignments, "what only a dead branch or node read is unread"},
    {"compress-loops", nullptr, CompressBeforeLoops, "on the final operators of loops"},
    {"compress-where-made", nullptr, CompressWhereMade, "on every compress() that there is"},
    {"split-sums", nullptr, SplitSums, "on the final blocks: nothing joins the parts again"},
    {"mark-dead", nullptr, MarkDeadVariables, "last: describes the final blocks"},
};

// One decides which errors there are, two make what the others rely on, switching the last one off would
// only leak memory.
bool IsRequired(std::string_view pass) {
  return pass == "drop-unread" || pass == "read-through-storage" || pass == "cell-operands" ||
         pass == "mark-dead";
}

bool IsLeftOut(const Pass& pass, const PassOptions& options) {
  if (pass.name == "compress-loops" && !options.disabled.contains(kPlainStorage)) return true;
  return options.disabled.contains(pass.name) && !IsRequired(pass.name);
}

Result<Graph> RunOnGraph(const Pass& pass, Graph graph, const PassOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(Graph result, pass.on_graph(std::move(graph), options));
  if (Status status = Verify(result); !status.ok())
    return status.WithNote(fmt::format("after pass {}", pass.name));
  return result;
}

Status RunOnProgram(const Pass& pass, Program* program, const PassOptions& options) {
  if (pass.on_program != nullptr) {
    HEDDLE_RETURN_IF_ERROR(pass.on_program(program));
    return VerifyProgram(*program, fmt::format("pass {}", pass.name));
  }
  Status status;
  ForEachBlock(*program, [&](Block& block) {
    if (!status.ok() || block.graph.nodes.empty()) return;
    Result<Graph> graph = RunOnGraph(pass, std::move(block.graph), options);
    if (graph.ok()) {
      block.graph = *std::move(graph);
    } else {
      status = graph.status();
    }
  });
  return status;
}

void VisitSequences(std::vector<Block>& blocks, const std::function<void(std::vector<Block>&)>& visit) {
  for (Block& block : blocks) {
    VisitSequences(block.body, visit);
    VisitSequences(block.otherwise, visit);
  }
  visit(blocks);
}

}  // namespace

std::span<const Pass> Passes() { return kPasses; }

std::vector<std::string> NamesToDisable() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses)
    if (!IsRequired(pass.name)) names.emplace_back(pass.name);
  for (const std::span<const Rule> rules : {ExactRules(), OrderRules()})
    for (const Rule& rule : rules) names.emplace_back(rule.name);
  names.emplace_back(kBatchedRecursion);
  names.emplace_back(kPlainStorage);
  return names;
}

void ForEachSequence(Program* program, const std::function<void(std::vector<Block>&)>& visit) {
  VisitSequences(program->main, visit);
  for (auto& [name, function] : program->functions) VisitSequences(function.body, visit);
}

NewBlocks::NewBlocks(Program* program) {
  ForEachBlock(*program, [&](Block& block) { next_id_ = std::max(next_id_, block.id + 1); });
}

Block NewBlocks::Make(Block::Kind kind, const SourcePosition& position) {
  Block block;
  block.kind = kind;
  block.id = NextId();
  block.position = position;
  return block;
}

Result<Graph> RunGraphPasses(Graph graph, const PassOptions& options) {
  for (const Pass& pass : kPasses) {
    if (pass.on_graph == nullptr || IsLeftOut(pass, options)) continue;
    HEDDLE_ASSIGN_OR_RETURN(graph, RunOnGraph(pass, std::move(graph), options));
  }
  return graph;
}

Status RunPasses(Program* program, const PassOptions& options) {
  for (const Pass& pass : kPasses) {
    if (IsLeftOut(pass, options)) continue;
    HEDDLE_RETURN_IF_ERROR(RunOnProgram(pass, program, options));
    if (options.observe) options.observe(pass.name, *program);
  }
  return OkStatus();
}

}  // namespace heddle::compiler
