// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/fuse/template.h"
#include "core/values/panels.h"
#include "ops/product/matmul.h"

// Row: whole rows of a matrix through cell-wise operators, row aggregates, products with a small matrix, and
// at the end a column or full aggregate or t(X) %*% Y.
namespace heddle::compiler::fusion {
namespace {

constexpr double kMostAccumulators = 1 << 18;  // Cells of t(X) %*% Y that each task keeps.

constexpr int64_t kLeastTiles = 8;  // Of a wide product: less would not keep the threads busy.
constexpr double kMostPackedCells =
    1
    << 22;  // Of a wide right operand, which every tile reads: from memory, if it is larger than the caches.

// A single row is worth a pass of its own where all threads share it.
bool IsRealMatrix(const DagNode& node) {
  return node.matrix && (node.rows > 1 ? node.columns > 1 : node.columns > kColumnChunk);
}

// X %*% B with a narrow result, or with a wide one whose rows fit the cache beside those of X: what cell-wise
// operators do before and after it needs no memory. Where X has fewer columns than B the published template
// leaves the product to Outer; here only sampled products are Outer, so products of any depth are welcome.
bool IsRowProduct(const Dag& dag, const DagNode& node) {
  const DagNode &left = dag[node.inputs[0]], &right = dag[node.inputs[1]];
  if (!IsRealMatrix(left) || !right.matrix) return false;
  if (node.columns < ops::kWideProduct) return left.rows > node.columns;
  return !right.sparse && right.cells <= kMostPackedCells && left.rows >= kLeastTiles * ops::kLeastWideRows &&
         ops::FitsTiles(left.columns, node.columns);
}

// The same of a CSR chain, which goes by its entries: a row of B for each of them.
bool IsRowProductAlongEntries(const Dag& dag, const DagNode& node) {
  const NodeId left = node.inputs[0];
  return (FollowsEntries(dag, left) || HasRowDefaults(dag, left)) && !dag[node.inputs[1]].sparse &&
         dag[left].rows > node.columns;
}

// t(X) %*% Y of tall X whose result every task can keep. (Entries of a CSR matrix would go all over a wide
// one.)
bool IsRowTransposedProduct(const Dag& dag, const DagNode& node) {
  const int64_t narrow = std::min(node.rows, node.columns);
  const bool dense = !dag[node.inputs[0]].sparse && !dag[node.inputs[1]].sparse;
  return dag[node.inputs[0]].rows > narrow && node.cells <= kMostAccumulators &&
         (narrow < ops::kWideProduct || dense);
}

bool Open(const Dag& dag, NodeId id) {
  const DagNode& node = dag[id];
  if (!node.op->fusion.row) return false;
  switch (node.op->fusion.use) {
    case ops::RowUse::kCells:
      return node.cells > 1 && std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
               return input != kNoNode && IsRealMatrix(dag[input]) && dag[input].rows == node.rows;
             });
    case ops::RowUse::kRowAggregate:
    case ops::RowUse::kColumnAggregate:
    case ops::RowUse::kColumnRange: return IsRealMatrix(dag[node.inputs[0]]);
    case ops::RowUse::kCbind: return true;
    case ops::RowUse::kProduct: return IsRowProduct(dag, node);
    case ops::RowUse::kTransposedProduct: return IsRowTransposedProduct(dag, node);
    case ops::RowUse::kFullAggregate:
    case ops::RowUse::kSampledProduct:
    case ops::RowUse::kNone: return false;
  }
  return false;
}

bool Fuse(const Dag& dag, NodeId id, NodeId input) {
  const DagNode& node = dag[id];
  if (!node.op->fusion.row || !KeepsSparsity(dag, id, input)) return false;
  switch (node.op->fusion.use) {
    case ops::RowUse::kCells: return IsRowAligned(node, dag[input]);
    case ops::RowUse::kFullAggregate:
    case ops::RowUse::kRowAggregate:
    case ops::RowUse::kColumnAggregate:
    case ops::RowUse::kColumnRange:
    case ops::RowUse::kCbind: return true;
    case ops::RowUse::kProduct:
      if (input != node.inputs[0] || input == node.inputs[1]) return false;
      return dag[input].sparse ? IsRowProductAlongEntries(dag, node) : IsRowProduct(dag, node);
    case ops::RowUse::kTransposedProduct: return !dag[input].sparse && IsRowTransposedProduct(dag, node);
    case ops::RowUse::kSampledProduct:
    case ops::RowUse::kNone: return false;
  }
  return false;
}

bool Merge(const Dag& dag, NodeId id, NodeId input) {
  const DagNode& node = dag[id];
  switch (node.op->fusion.use) {
    case ops::RowUse::kCells: return KeepsSparsity(dag, id, input) && IsRowAligned(node, dag[input]);
    case ops::RowUse::kCbind: return true;
    case ops::RowUse::kTransposedProduct: return !dag[input].sparse;
    default: return false;
  }
}

Close CloseRow(const Dag& dag, NodeId id, const Entry&) {
  switch (dag[id].op->fusion.use) {
    case ops::RowUse::kFullAggregate:
    case ops::RowUse::kColumnAggregate:
    case ops::RowUse::kTransposedProduct: return Close::kClosedValid;
    default: return Close::kOpenValid;
  }
}

}  // namespace

const Template kRowTemplate = {FusionTemplate::kRow, Open, Fuse, Merge, CloseRow};

}  // namespace heddle::compiler::fusion
