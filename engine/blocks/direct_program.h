// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/programs/graph.h"
#include "engine/blocks/inferred_graph.h"
#include "engine/blocks/open_calls.h"
#include "engine/session/session.h"
#include "engine/session/statistics.h"
#include "engine/variables/grown_columns.h"
#include "engine/variables/variables.h"
#include "ops/base/graph_run.h"
#include "ops/base/kernel.h"

namespace heddle::engine {

/// About how long an operator takes one thread. `appends`: its first input is overwritten, or made longer
/// where it is.
double NanosecondsOf(const Node& node, std::span<const ValueInfo> inputs, bool appends);

/// Where what a direct program does is recorded.
struct DirectRecord {
  Recorder* recorder = nullptr;  ///< nullptr: nowhere. Else operators are timed (SessionOptions).
  std::string_view thread;
  const OpenCalls& calls;
};

/// The operators of a graph one after the other on the calling thread, without plan and actors: for graphs
/// whose work is smaller than what a plan costs. The kernels are those that a plan of one rank runs, without
/// fused operators, so results have the same bits.
class DirectProgram {
 public:
  /// `graph` is what the passes made of the part.
  DirectProgram(Graph graph, const SessionOptions& options);
  DirectProgram(const DirectProgram&) = delete;
  DirectProgram& operator=(const DirectProgram&) = delete;

  /// Counts what runs do there, which outlives the program. Before the first run.
  void CountIn(SessionStatistics* statistics);

  /// Takes the sizes of the variables as they are now. False where the graph cannot run with them.
  bool Enter(const VariableTable& frame);
  /// About how long its operators take one thread. After Enter.
  double nanoseconds() const { return nanoseconds_; }
  /// Of its first operator, in the function that it belongs to; 0: not known.
  int32_t line() const { return line_; }
  /// Reads variables and sets those that the graph assigns. After Enter, with the same variables. An error
  /// has the place of its operator. Of the variables that grow (`grown`) the graph reads none, but those that
  /// it only makes wider, which is done there.
  Status Run(const ops::KernelSource& kernels, ops::KernelContext& context, VariableTable* frame,
             GrownColumns* grown, const DirectRecord& record);
  /// Whether it reads the cells of the variable.
  bool ReadsCellsOf(const std::string& name) const;
  const Graph& graph() const { return inferred_.graph(); }

 private:
  using Kind = ops::GraphStep::Kind;
  struct Step : ops::GraphStep {
    OperatorStatistics* counts = nullptr;
    PlaceStatistics* place = nullptr;  ///< Where runs are recorded,
    uint32_t site = 0;                 ///< and its site there.
    bool is_replaced = false;          ///< Of a variable: the graph assigns it, so that its value is taken.
    bool grows = false;                ///< Part of X = cbind(X, v), if that is all there is to X here, and it
                                       ///< pays: set by Enter.
    bool appends = false;              ///< Leaves the cells of its first input where they are. Set by Enter.
    std::vector<NodeId> last_read;     ///< Values of the graph's own that nobody reads behind this step.
    ops::OperatorStep call;            ///< Of an operator, with the sizes of the last Enter.
  };
  // X = cbind(X, v).
  struct Growth {
    NodeId variable, cbind, assign;
  };

  void FindLastReaders();
  void FindGrowths();
  void SetSizes();
  Status RunSteps(const ops::KernelSource& kernels, ops::KernelContext& context, VariableTable* frame,
                  GrownColumns* grown, const DirectRecord& record);
  Status ReadVariable(NodeId id, VariableTable* frame);
  Status RunOperator(NodeId id, const ops::KernelSource& kernels, ops::KernelContext& context,
                     const DirectRecord& record);
  void FindPlaces(const DirectRecord& record);
  Status RunTimed(NodeId id, const ops::KernelSource& kernels, ops::KernelContext& context,
                  const DirectRecord& record);
  Status Assign(VariableTable* frame, GrownColumns* grown);
  Variable Assigned(const Node& node, const VariableTable& frame) const;
  Step& At(NodeId id) { return steps_[static_cast<size_t>(id)]; }
  const Step& At(NodeId id) const { return steps_[static_cast<size_t>(id)]; }

  InferredGraph inferred_;
  const bool is_timed_;
  SessionStatistics* statistics_ = nullptr;
  OpenCalls calls_;  ///< Of the places of the steps.
  std::vector<Step> steps_;
  std::vector<NodeId> read_at_end_;         ///< Values of the graph's own that no step reads last.
  std::vector<NodeId> variables_;           ///< Their nodes, in order.
  std::vector<ValueInfo> variables_infos_;  ///< Theirs, at the last inference.
  std::vector<Growth> growths_;             ///< What may grow.
  std::optional<bool> is_free_of_scalars_;
  double nanoseconds_ = 0;
  int32_t line_ = 0;
  int64_t bytes_moved_ = 0;       ///< By a run, as SessionStatistics counts them.
  int64_t matrix_operators_ = 0;  ///< Likewise.
  ops::GraphLayout layout_;
  std::optional<ops::GraphValues> values_;  ///< Of a run; empty between runs, but for literals.
  std::vector<std::pair<const std::string*, Variable>> assigned_;
};

}  // namespace heddle::engine
