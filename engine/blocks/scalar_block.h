// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/programs/graph.h"
#include "engine/variables/variables.h"
#include "ops/base/kernel.h"

namespace heddle::ops {
struct Operator;
}

namespace heddle::engine {

/// Evaluates graphs that are scalar arithmetic on known scalars (and renaming of variables) in place, without
/// a plan: loop counters, predicates, arguments of calls. Equal on every rank, because scalars are.
class ScalarBlocks {
 public:
  /// What a graph asks for at each of its nodes. Names the graph's own parts: the graph stays where it is.
  class Prepared {
   private:
    friend class ScalarBlocks;
    friend class BlockRunner;
    enum class StepKind : uint8_t { kLiteral, kVariable, kAssign, kSize, kPure, kPrint, kCheck };
    struct Step {
      StepKind kind = StepKind::kPure;
      const ops::Operator* op = nullptr;  // kSize, kPure
      const Scalar* literal = nullptr;    // kLiteral
      const std::string* name = nullptr;  // kVariable, kAssign
      size_t inputs = 0;                  // Of the node, without those left out at the end.
    };
    bool possible = true;
    bool acts = false;            // Prints, stops or asserts.
    bool renames = false;         // Assigns variables as they are, which may be matrices.
    NodeId decision = kNoNode;    // What the only assignment, that of Block::kPredicate, assigns.
    std::vector<Step> steps;      // one a node
    std::vector<NodeId> assigns;  // nodes "assign"
  };
  static Prepared Prepare(const Graph& graph);

  ScalarBlocks(int rank, const ops::KernelSource& kernels, ops::KernelContext& context)
      : rank_(rank), kernels_(kernels), context_(context) {}

  /// True: done, `frame` has the results and effects have acted (prints on rank 0 only). False: needs a plan,
  /// nothing has happened. An error is one of an effect (stop, assert). `prepared` is that of `graph`.
  Result<bool> Evaluate(const Graph& graph, Prepared* prepared, VariableTable* frame);
  /// The same for a graph that will not be seen again.
  Result<bool> EvaluateOnce(const Graph& graph, VariableTable* frame);
  /// The value of the predicate that is all that the graph assigns; nullptr where it has to be evaluated like
  /// any other graph. Valid until the next call.
  const Scalar* Decide(const Graph& graph, Prepared* prepared, const VariableTable& frame);

 private:
  using StepKind = Prepared::StepKind;
  struct Slot {  // of a node
    const Scalar* scalar = nullptr;
    const Variable* variable = nullptr;
    Scalar own;
  };
  bool Compute(const Graph& graph, Prepared* prepared, const VariableTable& frame);
  bool ComputeNode(const Graph& graph, NodeId id, Prepared* prepared);
  void Assign(const Graph& graph, const Prepared& prepared, VariableTable* frame);
  Status Act(const Node& node);

  int rank_;
  const ops::KernelSource& kernels_;
  ops::KernelContext& context_;
  std::vector<Slot> slots_;
  std::vector<const Scalar*> inputs_;
};

}  // namespace heddle::engine
