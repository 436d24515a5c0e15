// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/blocks/block_compiler.h"
#include "engine/blocks/direct_program.h"
#include "engine/blocks/scalar_block.h"

namespace heddle::engine {

class KnownPart;

/// The ways to run what is left of a block, at one place of it, that have been taken so far.
class KnownParts {
 public:
  KnownParts();
  ~KnownParts();

  /// The part that takes the variables as they are; nullptr where there is none.
  KnownPart* Find(const VariableTable& frame);
  /// Adds a part; drops an old one when there are many. nullptr where `part` is.
  KnownPart* Add(std::unique_ptr<KnownPart> part);
  /// What was left of the block, `graph`, inferred from the variables as they are; nullptr where it cannot
  /// be.
  const InferredGraph* Infer(const Graph& graph, ElementType element_type, const VariableTable& frame);
  /// True from the second time on. Most blocks of a script run once: to keep how would be in vain.
  bool WasHere() { return std::exchange(was_here_, true); }

 private:
  KnownPart* MoveUp(size_t i);

  std::optional<InferredGraph> source_;
  std::vector<std::unique_ptr<KnownPart>> parts_;
  bool was_here_ = false;
};

/// One part of a block as it ran before, for variables of certain types: directly, kernel by kernel, where
/// that is less work than a plan, else by its plan. Where nothing that the passes did depends on sizes, a
/// direct one serves any other sizes as well, so that a loop in which a matrix grows compiles once.
class KnownPart {
 public:
  /// Of `next`, a part of what was left of the block, which `frame` has the variables for. `key` is what a
  /// plan of it has; `parts` is where it will be. nullptr where the part is none for the direct way: too
  /// much work, files.
  static Result<std::unique_ptr<KnownPart>> MakeDirect(const Graph& before, const BlockPart& next,
                                                       uint64_t key, const SessionOptions& options,
                                                       const VariableTable& frame, KnownParts* parts,
                                                       SessionStatistics* statistics);
  /// The same by its plan. nullptr where infos do not tell which plan it is: files.
  static std::unique_ptr<KnownPart> MakePlanned(const Graph& before, const BlockPart& next, uint64_t key,
                                                const SessionOptions& options, const VariableTable& frame,
                                                KnownParts* parts);

  bool IsDirect() const { return program_.has_value(); }
  /// Of a direct one, after Find with the same variables.
  Status Run(const ops::KernelSource& kernels, ops::KernelContext& context, VariableTable* frame,
             GrownColumns* grown) {
    return program_->Run(kernels, context, frame, grown);
  }
  bool ReadsCellsOf(const std::string& name) const { return !IsDirect() || program_->ReadsCellsOf(name); }

  uint64_t key() const { return key_; }
  const Graph& graph() const { return IsDirect() ? program_->graph() : graph_; }
  const Graph& rest() const { return rest_; }  ///< What waits for it; stays where it is.
  const std::vector<std::string>& temporaries() const { return temporaries_; }
  ScalarBlocks::Prepared& prepared_rest() { return prepared_rest_; }
  KnownParts& next() { return next_; }  ///< Ways to run the rest.

 private:
  friend class KnownParts;
  /// What the passes and the cut of a block may know of a node, sizes aside.
  struct NodeClass {
    std::vector<ValueInfo> infos;  ///< With 0, 1 or 2 (many) rows and columns, but where sizes matter.
    bool is_known = false;         ///< Its value, of a scalar.
    bool operator==(const NodeClass&) const = default;
  };
  /// A variable that it was entered with.
  struct Entered {
    std::string name;
    ValueInfo info;
    Distribution distribution;
  };
  KnownPart(const BlockPart& next, uint64_t key, const InferredGraph& source, bool sizes_matter,
            const VariableTable& frame);
  /// Whether the variables are those of the last time, as far as it matters.
  bool IsAsBefore(const VariableTable& frame);
  /// Whether it can run with these variables, of which `source` is inferred.
  bool Takes(const InferredGraph& source, const VariableTable& frame);
  bool IsPlaced(const Entered& entered, const Variable& variable) const;
  bool Enters(const VariableTable& frame);
  void Classify(const InferredGraph& source, std::vector<NodeClass>* classes) const;

  const uint64_t key_;
  std::optional<DirectProgram> program_;
  Graph graph_;  ///< Inferred; of a planned part.
  const bool sizes_matter_;
  const bool is_free_of_values_;
  std::vector<Entered> entered_;
  std::vector<NodeClass> classes_;  ///< Of what was left of the block.
  std::vector<NodeClass> now_;
  Graph rest_;
  std::vector<std::string> temporaries_;
  ScalarBlocks::Prepared prepared_rest_;
  KnownParts next_;
};

/// Whether the session runs small parts of blocks directly at all: with one rank, by the default way to
/// choose fused operators.
bool RunsDirectly(const SessionOptions& options);
/// Whether a part with these sizes is small enough for it.
bool IsSmall(const Graph& graph);

}  // namespace heddle::engine
