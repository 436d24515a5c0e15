// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/session/block_compiler.h"
#include "cluster/session/direct_program.h"
#include "cluster/session/scalar_block.h"

namespace heddle::cluster {

class DirectPart;
/// The ways to run what is left of a block that have been taken so far.
using DirectParts = std::vector<std::unique_ptr<DirectPart>>;

/// One part of a block as a direct program, for variables of certain types: the first entry of the block with
/// such variables compiles it. Where nothing that the passes did depends on sizes, it serves any other sizes
/// as well, so that a loop in which a matrix grows compiles once.
class DirectPart {
 public:
  /// Of `next`, a part of `before` (what was left of the block), which `frame` has the variables for. `key`
  /// is what a plan of it would have. nullptr where the part is none for the direct way: too much work,
  /// files.
  static Result<std::unique_ptr<DirectPart>> Make(const Graph& before, BlockPart next, uint64_t key,
                                                  const SessionOptions& options, const Frame& frame,
                                                  SessionStatistics* statistics);

  /// Whether it can run with the variables as they are now.
  bool Takes(const Frame& frame);
  /// After Takes, with the same variables.
  Status Run(const ops::KernelSource& kernels, ops::KernelContext& context, Frame* frame,
             GrownColumns* grown) {
    return program_.Run(kernels, context, frame, grown);
  }
  bool ReadsCellsOf(const std::string& name) const { return program_.ReadsCellsOf(name); }

  uint64_t key() const { return key_; }
  const Graph& graph() const { return program_.graph(); }
  const Graph& rest() const { return rest_; }  ///< What waits for it; stays where it is.
  const std::vector<std::string>& temporaries() const { return temporaries_; }
  ScalarBlocks::Prepared& prepared_rest() { return prepared_rest_; }
  DirectParts& next() { return next_; }  ///< Ways to run the rest.

 private:
  /// What the passes and the cut of a block may know of a node, sizes aside.
  struct NodeClass {
    std::vector<ValueInfo> infos;  ///< With 0, 1 or 2 (many) rows and columns, but where sizes matter.
    bool is_known = false;         ///< Its value, of a scalar.
    bool operator==(const NodeClass&) const = default;
  };
  /// A variable of the source.
  struct Entered {
    const Node* node;
    const std::string* name;
    ValueInfo info;  ///< When the source was last inferred and the part was taken.
  };
  DirectPart(InferredGraph source, DirectProgram program)
      : source_(std::move(source)), program_(std::move(program)) {}
  void Classify(std::vector<NodeClass>* classes) const;

  uint64_t key_ = 0;
  InferredGraph source_;  ///< What was left of the block before this part.
  DirectProgram program_;
  bool sizes_matter_ = false;
  std::vector<Entered> variables_;
  bool is_free_of_values_ = false;
  std::vector<NodeClass> classes_;  ///< Of the source.
  std::vector<NodeClass> now_;
  Graph rest_;
  std::vector<std::string> temporaries_;
  ScalarBlocks::Prepared prepared_rest_;
  DirectParts next_;
};

/// Whether the session runs small parts of blocks directly at all: with one rank, by the default way to
/// choose fused operators.
bool RunsDirectly(const SessionOptions& options);
/// Whether a part with these sizes is small enough for it.
bool IsSmall(const Graph& graph);
/// The part that takes the variables as they are; nullptr where there is none.
DirectPart* FindDirectPart(DirectParts& parts, const Frame& frame);
/// Adds a part; drops an old one when there are many.
DirectPart* AddDirectPart(DirectParts& parts, std::unique_ptr<DirectPart> part);

}  // namespace heddle::cluster
