// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/template.h"

// Outer: everything between a product sampled at the non-zeros of a CSR matrix and a sum, another product, or
// a CSR result, aggregates of rows and what is made of them included (attention on a pattern). A rule made
// the sampled product before exploration (docs/fusion.md), so a driver is always there; what may be a root
// follows from formats: a CSR value is absent where the driver is, or one number in the rest of each row.
namespace heddle::compiler::fusion {
namespace {

bool SameShape(const DagNode& a, const DagNode& b) { return a.rows == b.rows && a.columns == b.columns; }

bool IsColumnBeside(const DagNode& node, const DagNode& input) {
  return input.matrix && input.rows == node.rows && input.columns == 1 && node.columns > 1;
}

bool FollowsDriver(const Dag& dag, NodeId id) {
  return dag[id].sparse && (FollowsEntries(dag, id) || HasRowDefaults(dag, id));
}

bool Open(const Dag& dag, NodeId id) { return dag[id].op->fusion.use == ops::RowUse::kSampledProduct; }

bool Fuse(const Dag& dag, NodeId id, NodeId input) {
  const DagNode& node = dag[id];
  if (!node.op->fusion.outer) return false;
  switch (node.op->fusion.use) {
    case ops::RowUse::kCells: return SameShape(node, dag[input]) || IsColumnBeside(node, dag[input]);
    case ops::RowUse::kFullAggregate:
    case ops::RowUse::kRowAggregate:
    case ops::RowUse::kColumnAggregate: return true;
    case ops::RowUse::kProduct: return input == node.inputs[0] && input != node.inputs[1];
    case ops::RowUse::kTransposedProduct: return input == node.inputs[0] && input != node.inputs[1];
    default: return false;
  }
}

// X * f(...) beside something that is absent where X is: (X != 0) * f(...). What was made of aggregates.
bool Merge(const Dag& dag, NodeId id, NodeId input) {
  const DagNode& node = dag[id];
  if (node.op->fusion.use != ops::RowUse::kCells) return false;
  if (dag[input].columns == 1 && dag[input].rows == node.rows) return dag[input].matrix;
  return node.op->binary == ops::BinaryCode::kMultiply && dag[input].sparse && SameShape(node, dag[input]);
}

Close CloseOuter(const Dag& dag, NodeId id, const Entry& entry) {
  const DagNode& node = dag[id];
  switch (node.op->fusion.use) {
    case ops::RowUse::kCells:
    case ops::RowUse::kSampledProduct:
      return node.columns == 1 || FollowsDriver(dag, id) ? Close::kOpenValid : Close::kOpenInvalid;
    case ops::RowUse::kRowAggregate: return Close::kOpenValid;
    // The operand may be a dense value that is 0 except at the entries, such as a softmax beside -Infinity.
    // Only the executor knows; it is asked.
    case ops::RowUse::kProduct: return Close::kClosedValid;
    default: break;
  }
  for (NodeId ref : entry.refs)
    if (ref != kNoNode && !FollowsDriver(dag, ref)) return Close::kClosedInvalid;
  return Close::kClosedValid;
}

}  // namespace

const Template kOuterTemplate = {FusionTemplate::kOuter, Open, Fuse, Merge, CloseOuter};

}  // namespace heddle::compiler::fusion
