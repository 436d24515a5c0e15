// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/fuse/template.h"
#include "ops/aggregate/aggregate.h"
#include "ops/simd/cellwise/elementwise_codes.h"

// Which CSR values an operator can compute along the entries of its driver: what the executor finds in a body
// (ops/fused/program/walk_entries.cc), asked of nodes before there is one.
namespace heddle::compiler::fusion {
namespace {

bool HasShapeOf(const DagNode& a, const DagNode& b) {
  return a.matrix && a.rows == b.rows && a.columns == b.columns;
}

// Aggregates that are computed along entries.
bool FoldsEntries(const Dag& dag, NodeId id) {
  const ops::AggregateKind kind = dag[id].op->aggregate->kind;
  const bool of_rows = dag[id].op->fusion.use == ops::RowUse::kRowAggregate;
  return kind == ops::AggregateKind::kSum || kind == ops::AggregateKind::kMean ||
         (of_rows && (kind == ops::AggregateKind::kMinimum || kind == ops::AggregateKind::kMaximum));
}

}  // namespace

bool IsAbsent(const Dag& dag, NodeId id, const std::function<bool(NodeId)>& absent) {
  const DagNode& node = dag[id];
  const Node& n = (*dag.graph)[id];
  if (!node.sparse || node.op == nullptr) return false;
  if (node.op->fusion.use == ops::RowUse::kSampledProduct) return absent(n.inputs[0]);
  if (node.op->fusion.use != ops::RowUse::kCells) return false;
  const auto is_absent = [&](NodeId operand) {
    return dag[operand].sparse && HasShapeOf(dag[operand], node) && absent(operand);
  };
  if (node.op->vanishes != nullptr)
    return node.op->vanishes({[&](size_t i) { return is_absent(n.inputs[i]); },
                              [&](size_t i) -> const Node& { return (*dag.graph)[n.inputs[i]]; }});
  const std::optional<ops::BinaryCode> code = node.op->binary;
  if (!code || n.inputs.size() < 2 || n.inputs[1] == kNoNode)
    return is_absent(n.inputs[0]);  // f(0) is 0: the result is CSR.
  if (ops::SkipsAbsentCells(*code)) return is_absent(n.inputs[0]) || is_absent(n.inputs[1]);
  if (!dag[n.inputs[1]].matrix)
    return is_absent(n.inputs[0]) && ops::KeepsZeroOnLeft(*code, (*dag.graph)[n.inputs[1]]);
  if (!dag[n.inputs[0]].matrix)
    return is_absent(n.inputs[1]) && ops::KeepsZeroOnRight(*code, (*dag.graph)[n.inputs[0]]);
  return is_absent(n.inputs[0]) && is_absent(n.inputs[1]);
}

bool FollowsEntries(const Dag& dag, NodeId id) {
  const std::vector<NodeId>& inputs = dag[id].inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](NodeId driver) {
    return driver != kNoNode && dag[driver].sparse && IsAbsent(dag, id, [&](NodeId other) {
             return other == driver || dag[other].pattern == dag[driver].pattern;
           });
  });
}

bool HasRowDefaults(const Dag& dag, NodeId id) {
  const DagNode& node = dag[id];
  if (!node.sparse || node.op == nullptr || node.op->fusion.use != ops::RowUse::kCells) return false;
  NodeId pattern = kNoNode;
  for (const NodeId input : node.inputs) {
    if (input == kNoNode || !dag[input].matrix) continue;
    if (HasShapeOf(dag[input], node)) {
      if (!dag[input].sparse || (pattern != kNoNode && dag[input].pattern != pattern)) return false;
      pattern = dag[input].pattern;
    } else if (dag[input].columns != 1 || dag[input].rows != node.rows) {
      return false;
    }
  }
  return pattern != kNoNode;
}

bool KeepsSparsity(const Dag& dag, NodeId id, NodeId input) {
  const DagNode &node = dag[id], &made = dag[input];
  if (node.op->fusion.use == ops::RowUse::kCells && node.sparse && !FollowsEntries(dag, id) &&
      !HasRowDefaults(dag, id))
    return !made.sparse && HasShapeOf(made, node);
  if (!made.sparse || made.op->fusion.use != ops::RowUse::kCells) return true;
  const bool by_entries = FollowsEntries(dag, input) || HasRowDefaults(dag, input);
  if (IsAggregate(node)) return by_entries && FoldsEntries(dag, id);
  if (by_entries) return true;
  if (node.op->fusion.use != ops::RowUse::kCells) return false;
  // Another CSR operand says where cells are looked at, or every cell is computed anyway.
  return !node.sparse || std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId other) {
    return other != kNoNode && other != input && dag[other].sparse && HasShapeOf(dag[other], node) &&
           dag[other].op == nullptr;
  });
}

}  // namespace heddle::compiler::fusion
