// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/programs/program.h"

namespace heddle::compiler {

struct PassOptions {
  std::set<std::string, std::less<>> disabled;  ///< Names of passes, and of rules (rules.h).
  /// True when every node.info of a graph is what the run will have, formats included; else formats of
  /// variables and of what is read are not known.
  bool infos_are_exact = false;
  /// Where given, set to true by a graph pass whose result may be another one for other sizes of the same
  /// values, all of them dense and each still empty, a vector or a matrix as before. Never set to false.
  bool* sizes_matter = nullptr;
  /// Called after every pass, with its name.
  std::function<void(std::string_view pass, const Program&)> observe;
};

/// One step of the compiler: a rewrite of one block's graph, or of the control program. Every pass says
/// whether it keeps the bits of results; one that does not is decided by types, shapes and formats alone and
/// runs in every mode (docs/numerics.md, end of section 3). Keeps: node.info of the nodes that stay.
struct Pass {
  std::string_view name;
  Result<Graph> (*on_graph)(Graph graph, const PassOptions& options);
  Status (*on_program)(Program* program);  ///< nullptr for a graph pass, and the other way round.
  std::string_view why;                    ///< Why it is where it is in the table.
};

/// The table, in the order in which the passes run over a program.
std::span<const Pass> Passes();
/// No pass: whether the session runs structural recursion in batches (docs/recursion.md). Keeps bits.
constexpr std::string_view kBatchedRecursion = "recursion";
/// No pass: whether what loops read is stored as it was made. Left out (`--compress auto`), the pass
/// "compress-loops" runs (docs/compression.md). Keeps bits.
constexpr std::string_view kPlainStorage = "plain-storage";
/// Everything that PassOptions::disabled may name: the passes that can be left out, the rules,
/// kBatchedRecursion and kPlainStorage.
std::vector<std::string> NamesToDisable();

/// Runs the table over a whole program and verifies each graph after each pass: the pass that broke a graph
/// is named.
Status RunPasses(Program* program, const PassOptions& options);

/// The graph passes on one graph, as at the entry of a block.
Result<Graph> RunGraphPasses(Graph graph, const PassOptions& options);

/// Calls visit(blocks) for every list of blocks that run one after the other: bodies, branches; inner before
/// outer.
void ForEachSequence(Program* program, const std::function<void(std::vector<Block>&)>& visit);

/// Makes blocks with ids that no block of the program has.
class NewBlocks {
 public:
  explicit NewBlocks(Program* program);
  int32_t NextId() { return next_id_++; }
  Block Make(Block::Kind kind, const SourcePosition& position);

 private:
  int32_t next_id_ = 0;
};

// The passes, one file each.

/// Removes values that no statement names, also those that would fail, and calls of functions for nothing but
/// such values (drop_unread.cc). Cannot be switched off: it decides which errors a script has.
Status DropUnreadValues(Program* program);
/// Operators of a block that read the result of compress() or decompress() read its input instead: what is
/// stored otherwise is what variables hold behind the block (read_through_storage.cc). Cannot be switched
/// off: the rules would see another graph where a script has compress(). Keeps bits.
Status ReadThroughStorage(Program* program);
/// Calls of functions that are called once, or that are a few operators, become the functions' blocks
/// (inline_functions.cc says which). Keeps bits, but for rand() without a seed.
Status InlineFunctions(Program* program);
/// Scalars that are the same on every way to a block become literals in it. Keeps bits.
Status PropagateConstants(Program* program);
/// Scalars that only depend on literals and on known sizes become literals; scalars that have the type that
/// is declared for them anyway need no conversion to it. Keeps bits.
Result<Graph> FoldConstants(Graph graph, const PassOptions& options);
/// An if whose predicate is a literal becomes the branch it takes; a while that is never entered goes, and so
/// does a loop over an empty sequence. Keeps bits.
Status SimplifyBranches(Program* program);
/// For loops that go through the rows (or columns) of matrices become operators on all of them
/// (vectorize_graph.h says which). Changes the order of sums, for the same loops in every mode.
Status VectorizeLoops(Program* program);
/// What a loop would compute anew in every round moves before it (hoist.cc says what and when). Keeps bits,
/// but of products of three factors, whose order is chosen among those that stay together.
Status HoistLoopInvariants(Program* program);
/// Straight-line blocks that follow each other become one: more to rewrite and to fuse in a graph. Keeps
/// bits, but for rand() without a seed, which depends on the number of blocks run.
Status MergeBlocks(Program* program);
/// Operands of cell-wise operators: a matrix of one cell on the right of a larger one becomes the scalar that
/// it holds, a text beside a matrix the number that it names, a vector on the left of outer(u, V, op) a
/// matrix like V. Keeps bits. Needs: shapes and types.
Result<Graph> PrepareCellOperands(Graph graph, const PassOptions& options);
/// lstm and lstm_backward of known sizes become the operators that have a row for each sequence in all that
/// their steps leave.
Result<Graph> ShareOutSequences(Graph graph, const PassOptions& options);
/// Algebra that keeps bits (rules_exact.cc). Needs: shapes and formats where a rule has a condition.
Result<Graph> ApplyExactRules(Graph graph, const PassOptions& options);
/// Algebra that changes the order of sums (rules_order.cc). Needs: shapes and formats.
Result<Graph> ApplyOrderRules(Graph graph, const PassOptions& options);
/// The cheapest order of A %*% B %*% C (order_products.cc). Changes the order of sums. Needs: shapes and
/// formats.
Result<Graph> OrderProducts(Graph graph, const PassOptions& options);
/// Equal pure operators on equal inputs become one. Effects are never merged. Keeps bits.
Result<Graph> ShareCommonSubexpressions(Graph graph, const PassOptions& options);
/// Removes nodes that lead to no effect, no operator that may fail and no variable; where infos are exact,
/// also reads that nobody reads. Keeps bits.
Result<Graph> RemoveDeadNodes(Graph graph, const PassOptions& options);
/// Removes assignments that nothing reads, then blocks and for loops that are left empty, until nothing
/// changes (liveness.h). Keeps bits.
Status RemoveUnreadAssignments(Program* program);
/// Matrices that loops read and do not change are compressed before them (compress_loops.cc), the run knowing
/// whether it pays. Only where kPlainStorage is left out. Keeps bits, but for rand() without a seed, which
/// depends on the number of blocks run. Needs: types and sizes.
Status CompressBeforeLoops(Program* program);
/// Blocks in which iterations of an independent parfor add to sums become two: what is computed, and what
/// adds it up (split_sums.h). Keeps bits.
Status SplitSums(Program* program);
/// Fills in Block::dead_after (liveness.h). Cannot be switched off: the run needs it.
Status MarkDeadVariables(Program* program);

}  // namespace heddle::compiler
