// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/optimize/infer.h"
#include "engine/blocks/file_look.h"
#include "engine/devices/open_loops.h"
#include "engine/session/session.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// The part of a block that can run next: all of it, or what its sizes allow (graph_cut.h).
struct BlockPart {
  Graph graph;  ///< Inferred: the size of every value is known, or found by running it.
  Graph rest;   ///< The nodes that wait for the run of `graph`; may be empty.
  std::vector<std::string> temporaries;  ///< Variables that `graph` assigns for `rest`.
  std::vector<std::optional<Scalar>>
      values;            ///< The known scalars among the nodes of `graph`, when `complete`.
  bool complete = true;  ///< `graph` is all that was left of the block.
  Status error;          ///< Why a node of `rest` cannot run at all.
};

/// What the passes of the compiler make of an inferred graph. `*sizes_matter`, where given: one of them
/// looked at a size.
Result<Graph> RunPasses(const SessionOptions& options, const Graph& graph, bool* sizes_matter = nullptr);

/// Makes plans, and the keys of plans, from the graph of a block and the variables that it is entered with.
/// The session and Precompile share it, so that both come to the same keys.
class BlockCompiler {
 public:
  /// All outlive the compiler. `files` tells reads their sizes.
  BlockCompiler(const SessionOptions& options, ops::Files* files, Clock* clock);

  /// A history is a hash of the parts of a block that have run. That of a block which is entered:
  uint64_t FirstHistory(int32_t block) const;
  /// The files that `rest` reads, as this rank finds them now.
  FileLook LookAt(const Graph& rest, const VariableTable& frame) const;
  /// The history where some reads of the rest wait for writes.
  static uint64_t HistoryOf(uint64_t history, const FileLook& look);
  /// The next part of `rest`. kInternal, or the error of the first node, when nothing can run: every rank has
  /// it, unless it is one of a file.
  Result<BlockPart> NextPart(int32_t block, Graph rest, const VariableTable& frame, int part,
                             const FileLook& look = {});
  /// The key of the plan of an inferred graph: a hash of the history, of all sizes and formats, and of where
  /// the variables are. Never 0.
  uint64_t KeyOf(uint64_t history, const Graph& graph, const VariableTable& frame) const;
  /// The key of that plan where `beside` bytes are in use that it does not read.
  static uint64_t KeyBeside(uint64_t key, int64_t beside);
  /// The plan of an inferred graph, without its key. `wanted` says for some of the variables that it assigns
  /// on which ranks they have to be; the others stay where they are made. Errors carry their place;
  /// kResourceExhausted past the memory less `beside`, the bytes of a rank that variables take which it does
  /// not read.
  /// Of a graph that is two side by side, cut at `boundary` (speculation.h), each half goes through the
  /// passes alone, so that it gets the bits that it has alone.
  Result<Plan> MakePlan(const Graph& graph, const VariableTable& frame,
                        const std::map<std::string, Distribution>& wanted = {}, NodeId boundary = 0,
                        int64_t beside = 0);
  /// The plan that moves variables to the ranks that want them, without its key.
  Result<Plan> MakeExchange(const Graph& graph, const std::map<std::string, Distribution>& wanted,
                            const VariableTable& frame) const;
  /// The loops around the blocks of which plans are made next.
  void set_loops(OpenLoops loops) { loops_ = std::move(loops); }
  /// Time in MakePlan so far, and how much of it chose fused operators.
  int64_t planning_ns() const { return planning_ns_; }
  int64_t fusion_ns() const { return fusion_ns_; }
  /// Plans of fused operators that were costed in it.
  int64_t fusion_costed() const { return fusion_costed_; }
  /// What there was to choose from when the last plan was made, where runs are recorded; once.
  std::string TakeChoices() { return std::exchange(choices_, ""); }

 private:
  const SessionOptions& options_;
  ops::Files* files_;
  Clock* clock_;
  uint64_t options_hash_ = 0;
  OpenLoops loops_;
  std::string choices_;
  int64_t planning_ns_ = 0, fusion_ns_ = 0, fusion_costed_ = 0;
};

}  // namespace heddle::engine
