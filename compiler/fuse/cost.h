// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "compiler/fuse/dag.h"
#include "core/programs/fused_operator.h"
#include "ops/base/machine_constants.h"

namespace heddle::compiler {

namespace fusion {

/// The model and the limits that one optimisation runs under.
struct CostModel {
  ops::MachineConstants constants;
  int64_t memory_budget = 0;  ///< Bytes that one operator may take on a rank; 0: no limit.
  int threads = 1;            ///< Of a rank.
  int ranks = 1;
  int64_t min_distributed_bytes = 0;  ///< As in placement (ops/base/split.h).
  /// OK where the executor can run an operator; empty: it can run everything.
  std::function<Status(const FusedOperator&)> can_run;
};

/// Added for an operator that exceeds the memory budget, or that the executor cannot run: such a plan is
/// taken only if there is no other.
constexpr double kInfeasibleNs = 1e13;

/// What computing a node takes, in units of ops::Cost. `along` shrinks to the visited share of cells in an
/// operator that walks entries; `fixed` does not.
struct NodeWork {
  double along = 0;
  double fixed = 0;
  double packed_bytes = 0;   ///< Memory inside a fused operator: operands packed for all threads.
  double scratch_bytes = 0;  ///< Memory inside a fused operator: of each thread, beside its tile.
  /// The part of `along` that is saved where values are computed at the entries of a CSR matrix and once for
  /// the rest of a row (ops/fused/lower/row_background.h). The executor does so if some value is a heavy
  /// function.
  double elsewhere = 0;
  bool heavy = false;
  /// Whether the node folds rows of several column chunks (ops/fused/lower/long_rows.h), which makes phases.
  bool folds_long_rows = false;
  int stored_between_phases = 0;  ///< Values that later phases read instead of computing them again.
};
NodeWork WorkOf(const Dag& dag, NodeId id);

/// A matrix that an operator reads. Some are read both by rows and whole.
struct OperatorInput {
  NodeId id = kNoNode;
  bool by_rows = false, whole = false;
  /// Some node reads it cell by cell. Products and row aggregates do not: they go by the entries of a CSR
  /// matrix.
  bool by_cells = false;
  bool copied = false;  ///< This operator pays for the copies that other ranks get.
};

/// One operator, fused or not, as the model sees it.
struct OperatorWork {
  FusionTemplate kind = FusionTemplate::kCell;
  std::vector<NodeId> roots;
  NodeWork work;
  std::span<const OperatorInput> inputs;  ///< Distinct.
  int nodes = 0;                          ///< Operators of the graph in it; one is not fused.
  bool split = false;                     ///< All ranks compute it, each its own rows.
  /// It computes CSR values, and its products and aggregates read no dense rows: it walks the entries of its
  /// CSR input.
  bool along_entries = false;
};

/// Finds OperatorWork::along_entries from the nodes that an operator computes.
class EntryWalk {
 public:
  void Add(const Dag& dag, NodeId id, bool is_root);
  bool IsAlong() const { return computes_sparse_ && !needs_dense_; }

 private:
  bool computes_sparse_ = false;  // Cells of a CSR matrix.
  bool needs_dense_ = false;      // Dense rows, by other than cell-wise operators, or as a result.
};

/// Adds a node of which `own` is the work.
void AddNode(const NodeWork& own, OperatorWork* operation);
/// Adds that input i of `id` reads it.
void AddRead(const Dag& dag, NodeId id, size_t i, OperatorInput* read);

/// Whether placement will split the rows of an operator with these roots and inputs over the ranks.
bool IsSplit(const Dag& dag, const OperatorWork& operation, const CostModel& model);

/// In nanoseconds.
struct OperatorTime {
  double write = 0, read = 0, compute = 0;
  double total = 0;  ///< write + max(read, compute), plus what distribution and limits add.
};
OperatorTime TimeOf(const Dag& dag, const OperatorWork& operation, const CostModel& model);

/// The value whose cells an operator with this root walks: the operand of an aggregate, the CSR operand of a
/// product, else the root itself. kNoNode when the root's work does not shrink with it.
NodeId WalkedValue(const Dag& dag, NodeId root);

}  // namespace fusion
}  // namespace heddle::compiler
