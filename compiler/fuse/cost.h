// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "compiler/fuse/dag.h"
#include "compiler/fuse/machine_constants.h"
#include "core/programs/fused_operator.h"

namespace heddle::compiler {

namespace fusion {

/// The model and the limits that one optimisation runs under.
struct CostModel {
  MachineConstants constants;
  int64_t memory_budget = 0;  ///< Bytes that one operator may take on a rank; 0: no limit.
  int threads = 1;            ///< Of a rank.
  int ranks = 1;
  int64_t min_distributed_bytes = 0;  ///< As in placement (ops/base/split.h).
  /// Whether the executor can run an operator; empty: everything.
  std::function<bool(const FusedOperator&)> can_run;
};

/// Added for an operator that exceeds the memory budget, or that the executor cannot run: such a plan is
/// taken only if there is no other.
constexpr double kInfeasibleSeconds = 1e4;

/// Work of a node. `along` shrinks when an operator goes along non-zeros; `fixed` already counts them.
struct NodeWork {
  double along = 0;
  double fixed = 0;
  double packed_bytes = 0;   ///< Inside a fused operator: copies of operands for all threads,
  double scratch_bytes = 0;  ///< and what each thread keeps beside a tile.
  /// Of `along`: what is not computed where values are computed at the entries of a CSR matrix and once for
  /// the rest of a row (ops/fused/lower/row_background.h). That pays where some value is a heavy function.
  double elsewhere = 0;
  bool heavy = false;
  /// Of rows of several column chunks (ops/fused/lower/long_rows.h): something folds them, so that there are
  /// phases; values that are kept between these.
  bool folds_long_rows = false;
  int kept = 0;
};
NodeWork WorkOf(const Dag& dag, NodeId id, const MachineConstants& constants);

/// Bytes that writing the value of a node moves.
double WriteBytes(const Dag& dag, NodeId id, const MachineConstants& constants);

/// A matrix that an operator reads. Some are read both by rows and whole.
struct OperatorInput {
  NodeId id = kNoNode;
  bool by_rows = false, whole = false;
  bool by_cells = false;  ///< Some operator reads its cells; products and row aggregates go by the entries of
                          ///< a CSR matrix.
  bool copied = false;    ///< This operator pays for the copies that other ranks get.
};

/// One operator, fused or not, as the model sees it.
struct OperatorWork {
  FusionTemplate kind = FusionTemplate::kCell;
  std::vector<NodeId> roots;  ///< Several: a multi-aggregate.
  NodeWork work;
  std::span<const OperatorInput> inputs;  ///< Distinct.
  int nodes = 0;                          ///< Operators of the graph in it; one is not fused.
  bool split = false;                     ///< All ranks compute it, each its own rows.
  /// A Row operator that computes CSR values and reads, by products and aggregates, no other rows: it walks
  /// the entries of its CSR input.
  bool along_entries = false;
};

/// Adds a node of which `own` is the work.
void AddNode(const NodeWork& own, OperatorWork* operation);
/// Adds that input i of `id` reads it.
void AddRead(const Dag& dag, NodeId id, size_t i, OperatorInput* read);

/// Foresees placement of an operator with these roots and inputs.
bool IsSplit(const Dag& dag, const OperatorWork& operation, const CostModel& model);

struct OperatorTime {
  double write = 0, read = 0, compute = 0;
  double total = 0;  ///< write + max(read, compute), scaled, plus what distribution and limits add.
};
OperatorTime TimeOf(const Dag& dag, const OperatorWork& operation, const CostModel& model);

/// The value whose cells an operator with this root walks: the operand of an aggregate, the CSR operand of a
/// product, else the root itself. kNoNode when the root's work does not shrink with it.
NodeId WalkedValue(const Dag& dag, NodeId root);

}  // namespace fusion
}  // namespace heddle::compiler
