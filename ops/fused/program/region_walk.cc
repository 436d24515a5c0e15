// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/program/region_walk.h"

#include <algorithm>

#include "core/values/panels.h"
#include "ops/aggregate/aggregate.h"
#include "ops/simd/cellwise/cell_operators.h"
#include "ops/simd/cellwise/elementwise_codes.h"

namespace heddle::ops {
namespace {

// Heavy operators fill the machine, and on rows that are no whole eights lanes are lost; a fold is worth that
// on rows of so many columns.
constexpr int64_t kLongHeavyRow = 128;
// Results larger than this are written past the caches.
constexpr int64_t kStreamBytes = 32 << 20;

}  // namespace

bool FoldsRows(const Node& node) {
  const Aggregate* const aggregate = FindAggregate(node.op);
  return aggregate != nullptr && aggregate->scope == AggregateScope::kRow && !IsSpread(aggregate->kind) &&
         aggregate->kind != AggregateKind::kIndexMax && aggregate->kind != AggregateKind::kIndexMin;
}

RegionWalk ChooseWalk(const BodyView& view, const std::vector<NodeId>& members) {
  const int64_t columns = view.Columns(members[0]);
  bool folds_rows = false, folds_columns = false, is_heavy = false, folds_flat = false, repeats = false;
  for (NodeId id : members) {
    is_heavy |= IsHeavyNode(view, id);
    for (size_t i = 0; i < view.node(id).inputs.size(); ++i) {
      if (view.node(id).inputs[i] == kNoNode) continue;
      const Pattern pattern = view.PatternOf(id, i);
      repeats |= pattern == Pattern::kColumn || pattern == Pattern::kRow;
    }
    for (NodeId consumer : view.consumers(id))
      if (view.IsRows(consumer)) folds_rows |= FoldsRows(view.node(consumer));
    for (const TileRoot& root : view.program().roots) {
      if (view.node(root.node).inputs[0] != id) continue;
      folds_flat |=
          root.kind == TileRoot::Kind::kFull || (root.kind == TileRoot::Kind::kColumns && root.n <= 8);
      folds_columns |= root.kind == TileRoot::Kind::kColumns && root.n > 8;
    }
  }
  if (columns < 2 || (folds_flat && !folds_rows)) return RegionWalk::kFlat;
  // Vectors are repeated in registers where rows are whole registers and nothing is stored past the caches.
  const bool repeats_in_registers = repeats && columns % 4 == 0 && view.program().roles.reduces;
  if (!folds_rows && !folds_columns && !repeats_in_registers) return RegionWalk::kFlat;
  const int64_t operators = static_cast<int64_t>(members.size()) * CeilDivide(columns, 4);
  if (columns <= kMostNarrowColumns && !is_heavy && operators <= kMostUnrolled) return RegionWalk::kNarrow;
  if (columns >= kNarrowRow && (folds_columns || !is_heavy || columns >= kLongHeavyRow))
    return RegionWalk::kRows;
  return RegionWalk::kFlat;
}

bool GoesPastCaches(const BodyView& view, const Step& step) {
  bool stores = false;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const TileRef& place = step.outputs[i];
    if (step.output_roots[i] >= 0) continue;
    if (step.by_entries || place.kind != TileRef::Kind::kResult) return false;
    const NodeId root = view.program().fused.roots[static_cast<size_t>(place.index)];
    const ValueInfo& info = view.node(root).info;
    if (BytesOf(info.element_type) * info.shape.Cells() <= kStreamBytes || !view.consumers(root).empty())
      return false;
    stores = true;
  }
  return stores;
}

bool ReadsByHalves(const Region& region) {
  constexpr size_t kMostNodes = 14;
  const auto is_stored = [](const RegionOutput& output) { return output.sink == Sink::kStore; };
  return region.nodes.size() <= kMostNodes &&
         std::none_of(region.nodes.begin(), region.nodes.end(),
                      [](const RegionNode& n) { return IsHeavy(n); }) &&
         std::none_of(region.outputs.begin(), region.outputs.end(), is_stored);
}

bool IsHeavy(const RegionNode& node) {
  return (node.op == RegionOp::kUnary && HEDDLE_SIMD_NAMESPACE::IsHeavy(node.unary)) ||
         (node.op == RegionOp::kBinary && HEDDLE_SIMD_NAMESPACE::IsHeavy(node.binary));
}

bool IsHeavyNode(const BodyView& view, NodeId id) {
  const Node& node = view.node(id);
  const bool binary = node.inputs.size() == 2 && node.inputs[1] != kNoNode;
  if (!binary) {
    const std::optional<UnaryCode> code = FindUnaryCode(node.op);
    return code && HEDDLE_SIMD_NAMESPACE::IsHeavy(*code);
  }
  const std::optional<BinaryCode> code = FindBinaryCode(node.op);
  if (!code || *code != BinaryCode::kPower) return code && HEDDLE_SIMD_NAMESPACE::IsHeavy(*code);
  const Node& exponent = view.node(node.inputs[1]);
  return !exponent.Is("literal") ||
         exponent.FindAttribute("value")->AsDouble() != 2;  // A square is a product.
}

}  // namespace heddle::ops
