// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/template.h"

// Outer: everything between a product sampled at the non-zeros of a CSR matrix and a sum, another product, or
// a CSR result. A rule made the sampled product before exploration (docs/fusion.md), so a driver is always
// there; what may be a root follows from formats: a CSR value is absent where the driver is.
namespace heddle::compiler::fusion {
namespace {

bool SameShape(const DagNode& a, const DagNode& b) { return a.rows == b.rows && a.columns == b.columns; }

bool Open(const Dag& dag, NodeId id) { return dag[id].op->fusion.use == ops::RowUse::kSampledProduct; }

bool Fuse(const Dag& dag, NodeId id, NodeId input) {
  const DagNode& node = dag[id];
  if (!node.op->fusion.outer) return false;
  switch (node.op->fusion.use) {
    case ops::RowUse::kCells: return SameShape(node, dag[input]);
    case ops::RowUse::kFullAggregate: return true;
    case ops::RowUse::kProduct: return input == node.inputs[0] && input != node.inputs[1];
    case ops::RowUse::kTransposedProduct: return input == node.inputs[0] && input != node.inputs[1];
    default: return false;
  }
}

// X * f(...) beside something that is absent where X is: (X != 0) * f(...).
bool Merge(const Dag& dag, NodeId id, NodeId input) {
  return dag[id].op->binary == ops::BinaryCode::kMultiply && dag[input].sparse &&
         SameShape(dag[id], dag[input]);
}

Close CloseOuter(const Dag& dag, NodeId id, const Entry& entry) {
  const DagNode& node = dag[id];
  if (node.op->fusion.use == ops::RowUse::kCells || node.op->fusion.use == ops::RowUse::kSampledProduct)
    return node.sparse && FollowsEntries(dag, id) ? Close::kOpenValid : Close::kOpenInvalid;
  for (NodeId ref : entry.refs)
    if (ref != kNoNode && (!dag[ref].sparse || !FollowsEntries(dag, ref))) return Close::kClosedInvalid;
  return Close::kClosedValid;
}

}  // namespace

const Template kOuterTemplate = {FusionTemplate::kOuter, Open, Fuse, Merge, CloseOuter};

}  // namespace heddle::compiler::fusion
