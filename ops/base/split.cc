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

// Frames whose types differ are bound whole: the types of the result depend on all of them.
bool CanMoveRows(const Node& node, std::span<const ValueInfo> inputs) {
  if (RoleOf(node) != Role::kRbind || !node.info.IsSized()) return false;
  return std::all_of(inputs.begin(), inputs.end(), [&](const ValueInfo& input) {
    if (!input.IsSized()) return false;
    return !node.info.IsFrame() ||
           (input.schema != nullptr && node.info.schema != nullptr && *input.schema == *node.info.schema);
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
    rule = RowRule::kReduce;
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
  const std::span<const ValueInfo> results = ResultsOf(node);
  const bool splits = std::any_of(results.begin(), results.end(), [&](const ValueInfo& result) {
    return IsSplit(rule, by_rows, result, min_distributed_bytes);
  });
  return splits ? sharing : Sharing::kNone;
}

}  // namespace heddle::ops
