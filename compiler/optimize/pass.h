// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "core/program.h"

namespace heddle::compiler {

/// A rewrite of one block's graph. None may change the bits of a result. Keeps: node.info of the nodes that
/// stay.
struct Pass {
  std::string_view name;
  Result<Graph> (*run)(Graph graph);
  std::string_view why;  ///< Why it is where it is in the table.
};

/// A rewrite of the control program.
struct ProgramPass {
  std::string_view name;
  Status (*run)(Program* program);
  std::string_view why;
};

struct PassOptions {
  std::set<std::string, std::less<>> disabled;
  /// Called after every pass, with its name.
  std::function<void(std::string_view pass, const Program&)> observe;
};

/// The tables, in the order in which they run: all graph passes on all blocks, then the program passes.
std::span<const Pass> GraphPasses();
std::span<const ProgramPass> ProgramPasses();

/// Runs the tables over a whole program and verifies each graph after each pass: the pass that broke a graph
/// is named.
Status RunPasses(Program* program, const PassOptions& options);

/// The graph passes on one graph.
Result<Graph> RunGraphPasses(Graph graph, const PassOptions& options);

/// Calls visit(block) for every block, outer before inner, in the order of the text.
void ForEachBlock(std::vector<Block>* blocks, const std::function<void(Block&)>& visit);
void ForEachBlock(Program* program, const std::function<void(Block&)>& visit);

// The passes, one file each.

/// Exact algebra, written in DML (rules.cc). Needs: types of live-ins where a rule has a condition.
Result<Graph> ApplyRules(Graph graph);
/// Scalars that only depend on literals become literals. Needs: nothing.
Result<Graph> FoldConstants(Graph graph);
/// Equal pure operators on equal inputs become one. Effects are never merged. Needs: nothing.
Result<Graph> ShareCommonSubexpressions(Graph graph);
/// Removes nodes that lead to no effect, no operator that may fail and no variable. Needs: nothing.
Result<Graph> RemoveDeadNodes(Graph graph);

/// An if whose predicate is a literal becomes the branch it takes; a while that is never entered goes.
Status SimplifyBranches(Program* program);
/// Removes assignments that nothing reads, then blocks that are left empty, until nothing changes
/// (liveness.h).
Status RemoveUnreadAssignments(Program* program);
/// Fills in Block::dead_after (liveness.h). Cannot be switched off: the run needs it.
Status MarkDeadVariables(Program* program);

}  // namespace heddle::compiler
