// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/fuse/template.h"
#include "ops/base/broadcast.h"

// Cell: chains of cell-wise operators of one shape, ended by an aggregate in any direction.
namespace heddle::compiler::fusion {

bool IsAggregate(const DagNode& node) {
  const ops::RowUse use = node.op->fusion.use;
  return use == ops::RowUse::kFullAggregate || use == ops::RowUse::kRowAggregate ||
         use == ops::RowUse::kColumnAggregate;
}

bool IsFullAggregate(const DagNode& node) {
  return node.op != nullptr && node.op->fusion.use == ops::RowUse::kFullAggregate;
}

namespace {

// m x 1 op 1 x n.
bool IsOuterForm(const Dag& dag, const DagNode& node) {
  if (node.inputs.size() != 2 || node.inputs[1] == kNoNode) return false;
  const auto info = [&](size_t i) { return (*dag.graph)[node.inputs[i]].info; };
  return ops::PatternsOf(info(0), info(1)).left == ops::Pattern::kColumn;
}

}  // namespace

bool IsPlainCellWise(const Dag& dag, NodeId id) {
  const DagNode& node = dag[id];
  if (node.op->fusion.use != ops::RowUse::kCells || node.cells <= 1) return false;
  if (IsOuterForm(dag, node)) return true;
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
    return input != kNoNode && dag[input].matrix && dag[input].rows == node.rows &&
           dag[input].columns == node.columns;
  });
}

namespace {

bool IsDotProduct(const DagNode& node) {
  return node.op->fusion.use == ops::RowUse::kTransposedProduct && node.cells == 1;
}

bool Open(const Dag& dag, NodeId id) {
  const DagNode& node = dag[id];
  if (!node.op->fusion.cell) return false;
  if (node.op->fusion.use == ops::RowUse::kColumnRange) return node.columns == 1;
  return IsPlainCellWise(dag, id);
}

bool Fuse(const Dag& dag, NodeId id, NodeId input) {
  const DagNode& node = dag[id];
  if (!node.op->fusion.cell || !KeepsSparsity(dag, id, input)) return false;
  if (IsAggregate(node) || IsDotProduct(node)) return true;
  return IsPlainCellWise(dag, id) && IsRowAligned(node, dag[input]);
}

bool Merge(const Dag& dag, NodeId id, NodeId input) {
  return KeepsSparsity(dag, id, input) &&
         (IsDotProduct(dag[id]) || (IsPlainCellWise(dag, id) && IsRowAligned(dag[id], dag[input])));
}

Close CloseCell(const Dag& dag, NodeId id, const Entry&) {
  const ops::RowUse use = dag[id].op->fusion.use;
  return use == ops::RowUse::kCells || use == ops::RowUse::kColumnRange ? Close::kOpenValid
                                                                        : Close::kClosedValid;
}

}  // namespace

const Template kCellTemplate = {FusionTemplate::kCell, Open, Fuse, Merge, CloseCell};

}  // namespace heddle::compiler::fusion
