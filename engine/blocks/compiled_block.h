// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/recently_used.h"
#include "engine/blocks/block_compiler.h"
#include "engine/blocks/direct_program.h"
#include "engine/blocks/inferred_graph.h"
#include "engine/blocks/scalar_program.h"

namespace heddle::engine {

class CompiledPart;

/// All that has been made to run one graph: the graph of a block, or what is left of one behind its first
/// part. It is entered again and again, and the parts that it began with are here, each with the types and
/// sizes of the variables that it was compiled for. The graph stays where it is.
class CompiledBlock {
 public:
  explicit CompiledBlock(const Graph& graph);
  ~CompiledBlock();
  CompiledBlock(const CompiledBlock&) = delete;
  CompiledBlock& operator=(const CompiledBlock&) = delete;

  const Graph& graph() const { return graph_; }
  ScalarProgram& scalars() { return scalars_; }
  /// Whether it reads seeds of rand(), which are drawn whenever it is entered.
  bool draws_seeds() const { return draws_seeds_; }

  /// The part that was compiled for variables like these; nullptr where there is none.
  CompiledPart* Find(const VariableTable& frame);
  /// Compiles `part`, with which the graph begins for these variables, to run directly, where it is small
  /// enough, and adds it. False, and it is not touched, where it is not.
  Result<bool> AddDirect(std::unique_ptr<CompiledPart>* part, const SessionOptions& options,
                         const VariableTable& frame, SessionStatistics* statistics);
  /// Adds `part`, to be run by its plan, from the second time on that the graph is compiled: most blocks of a
  /// script run once, and to note what they ran with would be in vain. False, and it is not touched, the
  /// first time, and where infos of variables do not tell which plan it is: files.
  bool AddPlanned(std::unique_ptr<CompiledPart>* part, const SessionOptions& options,
                  const VariableTable& frame);

 private:
  const InferredGraph* Infer(ElementType element_type, const VariableTable& frame);
  void Add(std::unique_ptr<CompiledPart> part);

  const Graph& graph_;
  ScalarProgram scalars_;
  const bool draws_seeds_;
  bool was_compiled_ = false;
  std::optional<InferredGraph> inferred_;
  RecentlyUsedList<std::unique_ptr<CompiledPart>> parts_;
};

/// For which variables a part was compiled, so that another entry of its block can tell whether it serves.
/// Where nothing that the passes did depends on sizes, it serves any sizes, and a loop in which a matrix
/// grows compiles once.
class PartSignature {
 public:
  /// `inferred` is the graph that the part begins, for the variables of `frame`.
  PartSignature(const InferredGraph& inferred, bool sizes_matter, bool places_matter,
                const VariableTable& frame);
  /// Whether the variables are those of the last time, which takes no inference to see.
  bool AreSame(const VariableTable& frame) const;
  /// Whether the part serves these variables, for which `inferred` is the graph that it begins.
  bool Serves(const InferredGraph& inferred, const VariableTable& frame);

 private:
  /// What the passes and the cut of a block may know of a node.
  struct NodeClass {
    std::vector<ValueInfo> results;  ///< With 0, 1 or 2 (many) rows and columns, but where sizes matter.
    bool is_known = false;           ///< Its value, of a scalar.
    bool operator==(const NodeClass&) const = default;
  };
  struct Input {
    std::string name;
    ValueInfo info;
    Distribution distribution;
    bool is_panels = false;
    Residence residence;
  };
  void FindClasses(const InferredGraph& inferred, std::vector<NodeClass>* classes) const;
  bool IsInPlace(const Input& input, const Variable& variable) const {
    return variable.is_panels == input.is_panels && variable.residence == input.residence &&
           (!places_matter_ || variable.distribution == input.distribution);
  }

  bool sizes_matter_;
  bool places_matter_;
  bool is_free_of_scalars_;
  std::vector<Input> inputs_;  ///< The variables of the last time.
  std::vector<NodeClass> classes_;
  std::vector<NodeClass> compared_;  ///< Room for those of other variables.
};

/// A part of a block, compiled: it runs directly or by the plan of its key, and leaves the rest of the block.
class CompiledPart {
 public:
  /// To be run by the plan of `key`.
  CompiledPart(BlockPart part, uint64_t key);

  uint64_t key() const { return key_; }
  /// Inferred. Of a direct part what the passes made of it.
  const Graph& graph() const { return program_ != nullptr ? program_->graph() : graph_; }
  /// nullptr: it runs by its plan.
  DirectProgram* program() { return program_.get(); }
  bool ReadsCellsOf(const std::string& name) const {
    return program_ == nullptr || program_->ReadsCellsOf(name);
  }
  const std::vector<std::string>& temporaries() const { return temporaries_; }
  const CompiledBlock& rest() const { return rest_; }
  CompiledBlock& rest() { return rest_; }  ///< What waits for it; an empty graph where nothing does.

 private:
  friend class CompiledBlock;
  /// A direct part is entered with the variables, and small enough with them.
  bool CanRun(const VariableTable& frame);

  const uint64_t key_;
  Graph graph_;
  std::unique_ptr<DirectProgram> program_;
  std::optional<PartSignature> signature_;  ///< Of a part of a compiled block.
  const std::vector<std::string> temporaries_;
  const Graph rest_graph_;
  CompiledBlock rest_;
};

/// Whether the session runs small parts of blocks directly at all: with one rank, by the default way to
/// choose fused operators.
bool RunsDirectly(const SessionOptions& options);
/// Whether a part with these sizes is small enough for it.
bool IsSmall(const Graph& graph);

}  // namespace heddle::engine
