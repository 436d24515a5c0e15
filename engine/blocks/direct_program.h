// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/optimize/infer.h"
#include "core/programs/graph.h"
#include "engine/session/session.h"
#include "engine/session/statistics.h"
#include "engine/variables/grown_columns.h"
#include "engine/variables/variables.h"
#include "ops/base/kernel.h"

namespace heddle::ops {
struct Operator;
}

namespace heddle::engine {

/// About the bytes that an operator moves and the operations that it takes. `appends`: its first input is
/// overwritten, or made longer where it is.
double WorkOf(const Node& node, std::span<const ValueInfo> inputs, bool appends);

/// Types, sizes, formats and known scalars of the nodes of a graph, inferred again and again in place, as
/// compiler::InferShapes infers a copy.
class InferredGraph {
 public:
  InferredGraph(Graph graph, ElementType element_type);

  /// Infers all nodes from the variables of `frame`. False where something cannot be, is missing, or a
  /// variable is a list.
  bool Infer(const VariableTable& frame) { return Infer(frame, /*knows_values=*/true); }
  /// True if every size and type is known.
  bool IsComplete() const;
  /// Whether the nodes' infos come out of the variables' infos alone, whatever their scalars are. After
  /// Infer.
  bool IsFreeOfValues(const VariableTable& frame) const;
  const Graph& graph() const { return graph_; }
  const std::vector<std::optional<Scalar>>& values() const { return values_; }

 private:
  bool Infer(const VariableTable& frame, bool knows_values);

  Graph graph_;
  std::vector<std::optional<Scalar>> values_;
  compiler::NodeInference inference_;
};

/// The operators of a graph one after the other on the calling thread, values whole, no plan and no actors:
/// for graphs whose work is smaller than what a plan costs. The kernels are those that a plan of one rank
/// runs, without fused operators, so results have the same bits.
class DirectProgram {
 public:
  /// `graph` is what the passes made of the part.
  DirectProgram(Graph graph, const SessionOptions& options);
  /// What runs do is counted there, which outlives the program. Before the first run.
  void CountIn(SessionStatistics* statistics);

  /// Takes the sizes of the variables as they are now. False where the graph cannot run with them.
  bool Enter(const VariableTable& frame);
  /// About the bytes that a run moves and the operations that it takes. After Enter.
  double Work() const;
  /// Reads variables and sets those that the graph assigns. After Enter, with the same variables. An error
  /// has the place of its operator. `grown` holds no variable that the graph reads, but those that it does
  /// nothing with but make them wider: that is done there.
  Status Run(const ops::KernelSource& kernels, ops::KernelContext& context, VariableTable* frame,
             GrownColumns* grown);
  /// Whether it reads the cells of the variable.
  bool ReadsCellsOf(const std::string& name) const;
  const Graph& graph() const { return inferred_.graph(); }

 private:
  enum class StepKind : uint8_t { kLiteral, kVariable, kAssign, kResult, kKernel };
  struct Step {
    StepKind kind = StepKind::kKernel;
    const ops::Operator* op = nullptr;  ///< Of kKernel.
    OperatorStatistics* statistics = nullptr;
    const std::string* name = nullptr;  ///< Of kVariable and kAssign.
    bool is_replaced = false;           ///< kVariable: assigned in this graph, so that its value is ours.
    bool grows = false;                 ///< Part of X = cbind(X, v), if that is all there is to X here, and
                                        ///< it pays: set by Enter.
    int64_t rows = 0;                   ///< KernelCall::total_rows.
    bool appends = false;     ///< kKernel: leaves the cells of its first input where they are. Set by Enter.
    bool reads_last = false;  ///< kKernel: nobody else reads the first input from here on.
    std::vector<NodeId> frees;           ///< Values that nobody reads behind this step.
    std::vector<ValueInfo> input_infos;  ///< As of the last Enter.
    std::vector<Value> results;          ///< What the node makes; several of a tuple.
    const Value* value = nullptr;        ///< What its readers get.
  };

  void FindLastReaders();
  void FindGrowing();
  Status RunSteps(const ops::KernelSource& kernels, ops::KernelContext& context, VariableTable* frame,
                  GrownColumns* grown);
  Status ReadVariable(Step& step, VariableTable* frame);
  Status RunKernel(Step& step, const Node& node, const ops::KernelSource& kernels,
                   ops::KernelContext& context);
  Variable Assigned(const Node& node) const;
  Step& At(NodeId id) { return steps_[static_cast<size_t>(id)]; }
  const Step& At(NodeId id) const { return steps_[static_cast<size_t>(id)]; }

  InferredGraph inferred_;
  const bool is_timed_;
  std::vector<Step> steps_;
  std::vector<NodeId> variables_;               ///< Their nodes, in order.
  std::vector<ValueInfo> entered_;              ///< Infos of the variables at the last inference, in order.
  std::vector<std::array<NodeId, 3>> growing_;  ///< X, cbind(X, v) and X = cbind(X, v) of what may grow.
  std::optional<bool> is_free_of_values_;
  double work_ = 0;
  int64_t bytes_moved_ = 0;       ///< By a run, as SessionStatistics counts them.
  int64_t matrix_operators_ = 0;  ///< Likewise.
  SessionStatistics* all_ = nullptr;
  std::vector<const Value*> inputs_;
  std::vector<std::pair<const std::string*, Variable>> assigned_;
};

}  // namespace heddle::engine
