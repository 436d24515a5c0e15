// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/fuse/template.h"

// Stitch: one pass over rows that leaves several results. Its members are whole operators of the other
// templates, so an entry of it does not say what is computed inside one operator but which inputs may be made
// in the same pass; which of them are is decided by cost (stitch.h).
namespace heddle::compiler::fusion {
namespace {

bool ReadsRowsOf(const Dag& dag, NodeId id, NodeId input) {
  const DagNode& node = dag[id];
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i] == input && node.by_rows[i] == 0) return false;
  return HeightOf(dag, id) == dag[input].rows;
}

// A pass walks dense rows tile by tile, so no member may read CSR cells one by one. CSR operands of products
// are read row by row.
bool Open(const Dag& dag, NodeId id) {
  const DagNode& node = dag[id];
  if (node.op == nullptr || node.sparse || node.op->fusion.use == ops::RowUse::kSampledProduct ||
      HeightOf(dag, id) <= 1)
    return false;
  if (node.op->fusion.use == ops::RowUse::kCells &&
      std::any_of(node.inputs.begin(), node.inputs.end(),
                  [&](NodeId input) { return input != kNoNode && dag[input].sparse; }))
    return false;
  return kRowTemplate.open(dag, id) || kCellTemplate.open(dag, id) || IsAggregate(node);
}

bool Fuse(const Dag& dag, NodeId id, NodeId input) {
  return Open(dag, id) && dag[input].matrix && ReadsRowsOf(dag, id, input);
}

// A reduction over all rows may be a member as well: it is a result of the pass, and no member reads it.
Close CloseStitch(const Dag&, NodeId, const Entry&) { return Close::kOpenValid; }

}  // namespace

bool ReducesRows(const DagNode& node) {
  if (node.op == nullptr) return false;
  const ops::RowUse use = node.op->fusion.use;
  return use == ops::RowUse::kFullAggregate || use == ops::RowUse::kColumnAggregate ||
         use == ops::RowUse::kTransposedProduct;
}

const Template kStitchTemplate = {FusionTemplate::kStitch, Open, Fuse, Fuse, CloseStitch};

}  // namespace heddle::compiler::fusion
