// SPDX-License-Identifier: Apache-2.0
#include "ops/base/split.h"

#include <algorithm>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/stages.h"

namespace heddle::ops {
namespace {

bool IsWorthSplitting(const ValueInfo& info, int64_t min_distributed_bytes) {
  return info.IsTabular() && info.shape.IsKnown() && info.shape.rows > Granule(info.shape.rows) &&
         SaturatingProduct(info.shape.Cells(), BytesOf(info.element_type)) >= min_distributed_bytes;
}

}  // namespace

double BytesToMove(const ValueInfo& info) {
  constexpr double kScalarBytes = 8, kGuessedSparsity = 0.1, kIndexBytes = 4;
  if (!info.IsTabular() || !info.IsSized()) return kScalarBytes;
  const auto bytes = static_cast<double>(KnownBytes(info));
  if (!info.IsMatrix() || info.format != Format::kSparse) return bytes;
  const double entry_bytes = static_cast<double>(BytesOf(info.element_type)) + kIndexBytes;
  return bytes + kGuessedSparsity * entry_bytes * static_cast<double>(info.shape.Cells());
}

bool IsWide(const ValueInfo& info, int64_t min_distributed_bytes) {
  const Shape turned = {info.shape.columns, info.shape.rows};
  return info.IsMatrix() && info.shape.IsKnown() && turned.rows > turned.columns &&
         IsWorthSplitting(ValueInfo::OfMatrix(turned), min_distributed_bytes);
}

bool IsSplit(RowRule rule, std::span<const RowsInput> inputs, const ValueInfo& result,
             int64_t min_distributed_bytes) {
  if (rule == RowRule::kWhole) return false;
  if (rule == RowRule::kGenerate) return IsWorthSplitting(result, min_distributed_bytes);
  if (std::any_of(inputs.begin(), inputs.end(), [&](const RowsInput& input) {
        return input.split || IsWorthSplitting(input.info, min_distributed_bytes);
      }))
    return true;
  return rule == RowRule::kRowWise && !inputs.empty() && IsWorthSplitting(result, min_distributed_bytes);
}

namespace {

// Whether every cell of a column of one type is one of a column of the other, which is wider. Characters are
// too short for the texts of many numbers.
bool AlwaysFits(ColumnType from, ColumnType to) { return from == to || to != ColumnType::kCharacter; }

// Frames with cells that may not fit the column below which they come are bound whole: which of them is the
// first, one rank finds.
bool CanMoveRows(const Node& node, std::span<const ValueInfo> inputs) {
  if (RoleOf(node) != Role::kRbind || !node.info.IsSized()) return false;
  return std::all_of(inputs.begin(), inputs.end(), [&](const ValueInfo& input) {
    if (!input.IsSized()) return false;
    return !node.info.IsFrame() ||
           std::equal(input.schema->types.begin(), input.schema->types.end(), node.info.schema->types.begin(),
                      node.info.schema->types.end(), AlwaysFits);
  });
}

}  // namespace

namespace {

// Whether ranks that have some of the inputs by rows share the operator out by such a rule.
bool Splits(const Node& node, RowRule rule, std::span<const RowsInput> by_rows,
            int64_t min_distributed_bytes) {
  const std::span<const ValueInfo> results = ResultsOf(node);
  return std::any_of(results.begin(), results.end(), [&](const ValueInfo& result) {
    return IsSplit(rule, by_rows, result, min_distributed_bytes);
  });
}

// Whether a form of an operator that its row rule does not share out does.
bool SplitsInStages(const Operator& op, const Node& node, std::span<const ValueInfo> inputs,
                    const std::function<bool(size_t i)>& is_split, int64_t min_distributed_bytes) {
  if (op.staged == nullptr || op.effect) return false;
  const auto forms = StagedFormsOf(op, node, inputs);
  return std::any_of(forms.begin(), forms.end(), [&](const auto& form) {
    std::vector<RowsInput> by_rows;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (node.inputs[i] != kNoNode &&
          InputUseOf(*form.second, node, inputs, static_cast<int>(i)) == InputUse::kRows)
        by_rows.push_back({inputs[i], is_split(i)});
    return Splits(node, RowRule::kReduce, by_rows, min_distributed_bytes);
  });
}

}  // namespace

Sharing SharingOf(const Node& node, std::span<const ValueInfo> inputs,
                  const std::function<bool(size_t i)>& is_split, int64_t min_distributed_bytes) {
  const Operator* const op = FindOperator(node.op);
  if (op == nullptr) return Sharing::kNone;
  RowRule rule = RowRuleOf(node, inputs);
  Sharing sharing = Sharing::kRowRule;
  if (rule == RowRule::kWhole && CanMoveRows(node, inputs)) {
    sharing = Sharing::kMovedRows;
    rule = RowRule::kRowWise;
  } else if (rule == RowRule::kWhole) {
    if (op->staged == nullptr || StagedFormsOf(*op, node, inputs).empty()) return Sharing::kNone;
    sharing = Sharing::kStages;
    const bool reads_tables =
        std::any_of(inputs.begin(), inputs.end(), [](const ValueInfo& input) { return input.IsTabular(); });
    rule = reads_tables ? RowRule::kReduce : RowRule::kGenerate;
  }
  std::vector<RowsInput> by_rows;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool reads_rows =
        sharing == Sharing::kMovedRows || InputUseOf(node, inputs, static_cast<int>(i)) == InputUse::kRows;
    if (node.inputs[i] != kNoNode && reads_rows) by_rows.push_back({inputs[i], is_split(i)});
  }
  // What one rank has is not shared out for an effect, which is on rank 0 in the end.
  if (op->effect &&
      std::none_of(by_rows.begin(), by_rows.end(), [](const RowsInput& input) { return input.split; }))
    return Sharing::kNone;
  if (Splits(node, rule, by_rows, min_distributed_bytes)) return sharing;
  const bool splits =
      sharing == Sharing::kRowRule && SplitsInStages(*op, node, inputs, is_split, min_distributed_bytes);
  return splits ? Sharing::kStages : Sharing::kNone;
}

double HeldByRowRule(const Node& node, std::span<const ValueInfo> inputs, int ranks) {
  double held = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (node.inputs[i] != kNoNode)
      held += BytesToMove(inputs[i]) /
              (InputUseOf(node, inputs, static_cast<int>(i)) == InputUse::kRows ? ranks : 1);
  for (const ValueInfo& result : ResultsOf(node)) held += BytesToMove(result) / ranks;
  return held;
}

bool IsBetter(const StagedWay& way, const StagedWay& other, double most_held) {
  const bool fits = way.held_bytes <= most_held, other_fits = other.held_bytes <= most_held;
  if (fits != other_fits) return fits;
  if (!fits && way.held_bytes != other.held_bytes) return way.held_bytes < other.held_bytes;
  return way.cost < other.cost;
}

StagedWay BestGrid(const StagedForm& form, const Node& node, std::span<const ValueInfo> inputs, int32_t ranks,
                   double most_held, const std::function<double(const RankGrid& grid)>& cost_of) {
  const auto way_on = [&](int32_t columns) {
    const RankGrid grid{.ranks = ranks, .columns = columns};
    const double held_bytes = form.held_bytes == nullptr ? 0 : form.held_bytes(node, inputs, grid);
    return StagedWay{grid, cost_of(grid), held_bytes};
  };
  if (!form.on_grid) return way_on(1);
  // A grid of one column is the row rule in more stages, which may need less memory.
  const bool fits_by_rows = HeldByRowRule(node, inputs, ranks) <= most_held;
  const int32_t least_columns = std::max(form.least_columns, fits_by_rows ? 2 : 1);
  StagedWay best = way_on(ranks);
  for (int32_t columns = ranks / 2; columns >= least_columns; --columns) {
    if (ranks % columns != 0) continue;
    if (const StagedWay way = way_on(columns); IsBetter(way, best, most_held)) best = way;
  }
  return best;
}

double MostHeldBytes(double all_bytes, int ranks, int64_t min_distributed_bytes, int64_t memory_bytes) {
  constexpr double kSharesOfRank = 3;
  if (memory_bytes > 0) return static_cast<double>(memory_bytes);
  return std::max(static_cast<double>(min_distributed_bytes), kSharesOfRank * all_bytes / ranks);
}

double MostHeldBytes(const Node& node, std::span<const ValueInfo> inputs, int ranks,
                     int64_t min_distributed_bytes, int64_t memory_bytes) {
  double all = 0;
  for (const ValueInfo& input : inputs) all += BytesToMove(input);
  for (const ValueInfo& result : ResultsOf(node)) all += BytesToMove(result);
  return MostHeldBytes(all, ranks, min_distributed_bytes, memory_bytes);
}

}  // namespace heddle::ops
