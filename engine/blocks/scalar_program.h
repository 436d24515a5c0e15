// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/programs/graph.h"
#include "engine/variables/variables.h"
#include "ops/base/graph_run.h"
#include "ops/base/kernel.h"

namespace heddle::engine {

/// A graph as arithmetic on scalars, sizes of matrices and renamed variables: loop counters, predicates,
/// arguments of calls. What its nodes are is found once; values are those of a ScalarEvaluator. Names parts
/// of the graph, which stays where it is.
class ScalarProgram {
 public:
  explicit ScalarProgram(const Graph& graph);
  /// Whether it assigns variables as they are: they may be matrices.
  bool renames_variables() const { return renames_variables_; }

 private:
  friend class ScalarEvaluator;
  struct Step : ops::GraphStep {
    enum class Use : uint8_t { kNone, kCompute, kSize, kPrint, kCheck };
    Use use = Use::kNone;  // Of an operator: a check is stop() or assert().
    size_t inputs = 0;     // Of the node, without those left out at the end.
  };

  const Graph& graph_;
  bool is_possible_ = true;   // All operators are defined on scalars, as far as is known.
  bool has_effects_ = false;  // Prints, stops or asserts.
  bool renames_variables_ = false;
  NodeId predicate_ = kNoNode;  // What the only assignment, that of Block::kPredicate, assigns.
  std::vector<Step> steps_;     // One a node.
  std::vector<NodeId> assignments_;
};

/// Runs scalar programs, one at a time, in place: without inference, plan or copies of matrices. The same on
/// every rank, because scalars are.
class ScalarEvaluator {
 public:
  /// `kernels` print and stop.
  ScalarEvaluator(int rank, const ops::KernelSource& kernels, ops::KernelContext& context)
      : rank_(rank), kernels_(kernels), context_(context) {}

  /// True: `frame` has the results, and effects are done (prints on rank 0 only). False: the graph needs more
  /// than this, and nothing has happened. An error is one of an effect (stop, assert), which every rank has,
  /// or memory was refused, perhaps on this rank alone: it must not ask for a plan then, as the others do
  /// not.
  Result<bool> Evaluate(ScalarProgram* program, VariableTable* frame);
  /// The value of the predicate that is all that the graph assigns; nullptr where it has to be evaluated like
  /// any other graph. Valid until the next call.
  Result<const Scalar*> Decide(ScalarProgram* program, const VariableTable& frame);

 private:
  struct NodeValue {
    const Scalar* scalar = nullptr;
    const Variable* variable = nullptr;
    Scalar own;
  };
  NodeValue& At(NodeId id) { return values_[static_cast<size_t>(id)]; }
  // Whether all nodes are `computed_`. Where memory was the reason that one is not, `refused_memory_` says
  // so.
  bool Compute(ScalarProgram* program, const VariableTable& frame);
  bool ComputeNode(NodeId id, ScalarProgram* program, const VariableTable& frame);
  bool ComputeOperator(NodeId id, ScalarProgram* program);
  void Assign(const ScalarProgram& program, VariableTable* frame);
  // The effects of the nodes before `end`, in their order.
  Status PrintAndCheck(const ScalarProgram& program, NodeId end);
  Status PrintOrCheck(const Node& node);

  int rank_;
  const ops::KernelSource& kernels_;
  ops::KernelContext& context_;
  std::vector<NodeValue> values_;  // By node of the program that runs.
  std::vector<const Scalar*> inputs_;
  NodeId computed_ = 0;  // Nodes that have values.
  Status refused_memory_;
};

}  // namespace heddle::engine
