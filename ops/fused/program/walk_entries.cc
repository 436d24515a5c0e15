// SPDX-License-Identifier: Apache-2.0
#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "ops/fused/program/body_view.h"
#include "ops/fused/program/region_walk.h"
#include "ops/simd/cellwise/elementwise_codes.h"

namespace heddle::ops {

bool VanishesWhere(const BodyView& view, NodeId id, const std::vector<bool>& vanishes) {
  const Node& n = view.node(id);
  const auto at = [&](size_t i) {
    return view.PatternOf(id, i) == Pattern::kCells && vanishes[BodyView::Index(n.inputs[i])];
  };
  if (const Operator* op = FindOperator(n.op); op->vanishes != nullptr)
    return op->vanishes({at, [&](size_t i) -> const Node& { return view.node(n.inputs[i]); }});
  if (n.inputs.size() < 2 || n.inputs[1] == kNoNode)
    return at(0) && UnaryFormat(*FindUnaryCode(n.op), {.format = Format::kSparse}) == Format::kSparse;
  const BinaryCode code = *FindBinaryCode(n.op);
  if (at(0) && KeepsZeroOnLeft(code, view.node(n.inputs[1]))) return true;
  if (at(1) && KeepsZeroOnRight(code, view.node(n.inputs[0]))) return true;
  switch (code) {
    case BinaryCode::kMultiply:
    case BinaryCode::kLogicalAnd: return (at(0) && view.Skips(id, 0)) || (at(1) && view.Skips(id, 1));
    case BinaryCode::kAdd:
    case BinaryCode::kSubtract:
    case BinaryCode::kLogicalOr:
    case BinaryCode::kExclusiveOr:
    case BinaryCode::kMinimum:
    case BinaryCode::kMaximum:
    case BinaryCode::kNotEqual:
    case BinaryCode::kLess:
    case BinaryCode::kGreater: return at(0) && at(1);
    default: return false;
  }
}

namespace {

// True if the value is used outside the walk along entries.
bool Leaves(const BodyView& view, NodeId id) {
  bool leaves = view.RowRoot(id) >= 0;
  for (NodeId consumer : view.consumers(id)) leaves |= !view.HasDriversShape(consumer);
  return leaves;
}

}  // namespace

bool CanWalkEntries(const BodyView& view) {
  if (!view.IsCsrInput(view.Driver()) || view.Columns(view.Driver()) < 2) return false;
  std::vector<bool> vanishes(view.body().nodes.size(), false);  // Absent (or zero) wherever the driver is.
  bool computes = false;
  for (NodeId id = 0; id < view.body().size(); ++id) {
    if (!view.HasDriversShape(id)) continue;
    const bool sampled = HasRole(view.node(id), Role::kSampledProduct);
    computes |= view.IsCellwise(id) || sampled;
    if (!view.IsInput(id) && !view.IsCellwise(id) && !sampled) return false;
    vanishes[BodyView::Index(id)] =
        id == view.Driver() || view.IsUnited(id) || sampled ||
        (view.IsCellwise(id) && VanishesWhere(view, id, vanishes));
  }
  for (NodeId id = 0; id < view.body().size(); ++id) {
    if (!view.HasDriversShape(id)) continue;
    if (!computes || (Leaves(view, id) &&
                      (!vanishes[BodyView::Index(id)] || view.node(id).info.format != Format::kSparse)))
      return false;
  }
  for (const TileRoot& root : view.program().roots) {
    const bool is_product = HasRole(view.node(root.node), Role::kTransposedProduct);
    const bool sums = FoldOf(root.aggregate) == simd::Fold::kAdd || is_product;
    if (view.HasDriversShape(view.node(root.node).inputs[0]) && !sums) return false;
    if (is_product && view.HasDriversShape(view.node(root.node).inputs[1])) return false;
  }
  for (NodeId id = 0; id < view.body().size(); ++id) {
    if (!view.IsRows(id) || view.IsInput(id) || view.IsCellwise(id) ||
        !view.HasDriversShape(view.node(id).inputs[0]))
      continue;
    if (HasRole(view.node(id), {Role::kProduct, Role::kSampledProduct})) continue;
    if (!FoldsRows(view.node(id))) return false;
    const simd::Fold fold = FoldOf(FindAggregate(view.node(id).op)->kind);
    const bool by_columns = fold == simd::Fold::kMultiply;  // In an order, with the absent cells.
    if (by_columns && view.Columns(view.Driver()) > kColumnChunk) return false;
  }
  return true;
}

bool LosesSparsity(const BodyView& view) {
  if (view.Columns(view.Driver()) < 2) return false;
  bool computes = false;
  for (NodeId id = 0; id < view.body().size(); ++id) {
    if (!view.HasDriversShape(id)) continue;
    computes |= view.IsCellwise(id);
    if (view.node(id).info.format != Format::kSparse && (!view.IsInput(id) || Leaves(view, id))) return false;
  }
  return computes;
}

std::vector<NodeId> SharedPatterns(const BodyView& view) {
  std::vector<NodeId> shared;
  for (NodeId id = 0; id < view.body().size(); ++id) {
    const bool patterned = view.RowRoot(id) >= 0 && view.HasDriversShape(id);  // It has the driver's entries.
    if (patterned || (view.IsRows(id) && HasRole(view.node(id), Role::kSampledProduct))) return shared;
  }
  for (NodeId input = 0; input < view.body().size(); ++input) {
    if (!view.HasDriversShape(input) || !view.IsCsrInput(input) || input == view.Driver()) continue;
    std::vector<bool> vanishes(view.body().nodes.size(), false);
    bool needed = true;
    for (NodeId id = 0; id < view.body().size(); ++id) {
      if (!view.HasDriversShape(id)) continue;
      vanishes[BodyView::Index(id)] =
          id == input || (view.IsCellwise(id) && VanishesWhere(view, id, vanishes));
      needed = needed && (vanishes[BodyView::Index(id)] || !Leaves(view, id));
    }
    if (needed) shared.push_back(input);
  }
  return shared;
}

}  // namespace heddle::ops
