// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/pass.h"

namespace heddle::compiler {
namespace {

constexpr Pass kGraphPasses[] = {
    {"rules", ApplyRules, "exact algebra; exposes equal subgraphs and dead nodes"},
    {"fold-constants", FoldConstants, "after rules; literals make nodes equal"},
    {"share", ShareCommonSubexpressions, "after everything that makes nodes equal"},
    {"remove-dead", RemoveDeadNodes, "last: sweeps what the others left behind"},
};

constexpr ProgramPass kProgramPasses[] = {
    {"simplify-branches", SimplifyBranches, "after folding, which turns predicates into literals"},
    {"remove-unread", RemoveUnreadAssignments, "after branches: what only a dead branch read is unread"},
    {"mark-dead", MarkDeadVariables, "last: describes the final blocks"},
};

// Switching it off would only leak memory, never help.
bool IsRequired(std::string_view pass) { return pass == "mark-dead"; }

Result<Graph> RunPass(const Pass& pass, Graph graph) {
  HEDDLE_ASSIGN_OR_RETURN(Graph result, pass.run(std::move(graph)));
  if (Status status = Verify(result); !status.ok())
    return status.WithNote(fmt::format("after pass {}", pass.name));
  return result;
}

}  // namespace

std::span<const Pass> GraphPasses() { return kGraphPasses; }
std::span<const ProgramPass> ProgramPasses() { return kProgramPasses; }

void ForEachBlock(std::vector<Block>* blocks, const std::function<void(Block&)>& visit) {
  for (Block& block : *blocks) {
    visit(block);
    ForEachBlock(&block.body, visit);
    ForEachBlock(&block.otherwise, visit);
  }
}

void ForEachBlock(Program* program, const std::function<void(Block&)>& visit) {
  ForEachBlock(&program->main, visit);
  for (auto& [name, function] : program->functions) ForEachBlock(&function.body, visit);
}

Result<Graph> RunGraphPasses(Graph graph, const PassOptions& options) {
  for (const Pass& pass : kGraphPasses) {
    if (options.disabled.contains(pass.name)) continue;
    HEDDLE_ASSIGN_OR_RETURN(graph, RunPass(pass, std::move(graph)));
  }
  return graph;
}

Status RunPasses(Program* program, const PassOptions& options) {
  for (const Pass& pass : kGraphPasses) {
    if (options.disabled.contains(pass.name)) continue;
    Status status;
    ForEachBlock(program, [&](Block& block) {
      if (!status.ok() || block.graph.nodes.empty()) return;
      Result<Graph> graph = RunPass(pass, std::move(block.graph));
      if (graph.ok()) {
        block.graph = *std::move(graph);
      } else {
        status = graph.status();
      }
    });
    HEDDLE_RETURN_IF_ERROR(status);
    if (options.observe) options.observe(pass.name, *program);
  }
  for (const ProgramPass& pass : kProgramPasses) {
    if (options.disabled.contains(pass.name) && !IsRequired(pass.name)) continue;
    HEDDLE_RETURN_IF_ERROR(pass.run(program));
    if (options.observe) options.observe(pass.name, *program);
  }
  return OkStatus();
}

}  // namespace heddle::compiler
