// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/optimize/infer.h"
#include "engine/blocks/file_look.h"
#include "engine/session/session.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// What can run next of a block.
struct BlockPart {
  Graph graph;                           ///< Inferred.
  Graph rest;                            ///< What waits for the run of `graph`; empty when nothing does.
  std::vector<std::string> temporaries;  ///< Variables that `graph` assigns for `rest`.
  std::vector<std::optional<Scalar>>
      values;            ///< Of the nodes of `graph` when `complete`, as in InferOutcome.
  bool complete = true;  ///< Every size of what was left of the block is known.
  Status error;          ///< Of a node behind `graph` that cannot be.
};

/// From the graph of a block and the variables it finds to plans and their keys. The session and whoever
/// compiles ahead of it share this, so that both come to the same keys.
class BlockCompiler {
 public:
  /// All outlive the compiler. `files` tells reads their sizes.
  BlockCompiler(const SessionOptions& options, ops::Files* files, Clock* clock);

  /// Where the history of a block starts.
  uint64_t FirstHistory(int32_t block) const;
  /// What rank 0 sees of the files that `rest` reads.
  FileLook LookAt(const Graph& rest, const VariableTable& frame) const;
  /// The history of what is cut where reads wait.
  static uint64_t HistoryOf(uint64_t history, const FileLook& look);
  /// The next part of `rest`. kInternal, or the error of the first node, when nothing can run.
  Result<BlockPart> NextPart(int32_t block, Graph rest, const VariableTable& frame, int part,
                             const FileLook& look = {});
  /// The plan cache's key of an inferred graph: options, block, parts before it, sizes, formats,
  /// distributions. Never 0.
  uint64_t KeyOf(uint64_t history, const Graph& graph, const VariableTable& frame) const;
  /// The plan of an inferred graph, without its key. `wanted`: where variables that it assigns are to be, if
  /// not where they are made. Errors carry their place; kResourceExhausted past the budget.
  Result<Plan> MakePlan(const Graph& graph, const VariableTable& frame,
                        const std::map<std::string, Distribution>& wanted = {});
  /// The plan that brings variables from where they are to where they are wanted, without its key.
  Result<Plan> MakeExchange(const Graph& graph, const std::map<std::string, Distribution>& wanted,
                            const VariableTable& frame) const;
  /// True when NextPart failed because a value would be too large: every rank comes to that by itself. What a
  /// read finds may differ.
  bool failed_by_size() const { return failed_by_size_; }
  /// Time in MakePlan so far, and the part of it that chose fused operators.
  int64_t planning_ns() const { return planning_ns_; }
  int64_t fusion_ns() const { return fusion_ns_; }
  /// Plans of fused operators that were costed in it.
  int64_t fusion_costed() const { return fusion_costed_; }

 private:
  const SessionOptions& options_;
  ops::Files* files_;
  Clock* clock_;
  uint64_t options_hash_ = 0;
  bool failed_by_size_ = false;
  int64_t planning_ns_ = 0, fusion_ns_ = 0, fusion_costed_ = 0;
};

}  // namespace heddle::engine
