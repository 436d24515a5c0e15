// SPDX-License-Identifier: Apache-2.0
#include "scheduler/staged_panels.h"

#include <algorithm>

#include "core/values/panels.h"
#include "ops/base/split.h"

namespace heddle::scheduler {
namespace {

// With more panels what they send to each other is too small to be worth a read.
constexpr int32_t kMostPanels = 256;

bool MakesPanels(ops::StagedResult result) {
  switch (result) {
    case ops::StagedResult::kSameRows:
    case ops::StagedResult::kRows:
    case ops::StagedResult::kUneven:
    case ops::StagedResult::kEach: return true;
    case ops::StagedResult::kSameColumns:
    case ops::StagedResult::kTurned:
    case ops::StagedResult::kFinished:
    case ops::StagedResult::kColumns: break;
  }
  return false;
}

// Rows of the first input that is read by rows, which the panels cut, and of the longest one.
struct RowCounts {
  int64_t first = kUnknown, most = 0;
};
std::optional<RowCounts> RowsOf(const ops::StagedForm& form, const Node& node,
                                std::span<const ValueInfo> inputs) {
  RowCounts rows;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] == kNoNode ||
        ops::InputUseOf(form, node, inputs, static_cast<int>(i)) != ops::InputUse::kRows)
      continue;
    if (!inputs[i].IsTabular() || !inputs[i].IsSized()) return std::nullopt;
    if (rows.first == kUnknown) rows.first = inputs[i].shape.rows;
    rows.most = std::max(rows.most, inputs[i].shape.rows);
  }
  if (rows.first == kUnknown) return std::nullopt;
  return rows;
}

// Panels are cut as the rows of ranks are, but for few rows that are long: these are cut anywhere.
Split CutsOf(int64_t rows, int32_t panels, bool needs_granules) {
  if (needs_granules || CeilDivide(rows, Granule(rows)) >= panels)
    return Distribution::SplitRows(rows, panels).split;
  Split split;
  for (int64_t panel = 0; panel <= panels; ++panel) split.cuts.push_back(rows * panel / panels);
  return split;
}

Split CutsOfResult(const ops::StagedForm& form, const Node& node, const Split& rows, int32_t panels) {
  if (form.result == ops::StagedResult::kSameRows) return rows;
  if (form.result == ops::StagedResult::kRows)
    return CutsOf(ResultsOf(node)[0].shape.rows, panels, /*needs_granules=*/false);
  return {};
}

}  // namespace

double HeldInStages(const ops::StagedForm& form, const Node& node, std::span<const ValueInfo> inputs,
                    const ops::RankGrid& grid) {
  if (form.held_bytes != nullptr) return form.held_bytes(node, inputs, grid);
  constexpr double kCopies = 3;  // What a stage reads, what it works with and what it makes.
  double bytes = ops::WorkingBytesOf(node, inputs) / kCopies;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (node.inputs[i] != kNoNode &&
        ops::InputUseOf(form, node, inputs, static_cast<int>(i)) == ops::InputUse::kRows)
      bytes += ops::BytesToMove(inputs[i]);
  for (const ValueInfo& result : ResultsOf(node)) bytes += ops::BytesToMove(result);
  return kCopies * bytes / grid.ranks;
}

std::optional<StagedPanels> StagesInPanels(const Node& node, std::span<const ValueInfo> inputs,
                                           double most_held) {
  const ops::Operator* const op = ops::FindOperator(node.op);
  if (op == nullptr || op->staged == nullptr) return std::nullopt;
  std::optional<StagedPanels> best;
  ops::StagedWay best_way;
  for (const auto& [place, form] : ops::StagedFormsOf(*op, node, inputs)) {
    if (!MakesPanels(form->result)) continue;
    const std::optional<RowCounts> rows = RowsOf(*form, node, inputs);
    const bool is_sized = form->result != ops::StagedResult::kRows || ResultsOf(node)[0].IsSized();
    if (!rows || !is_sized) continue;
    const int64_t parts = form->needs_granules ? CeilDivide(rows->most, Granule(rows->most)) : rows->most;
    for (int32_t panels = 2; panels <= kMostPanels && panels / 2 < parts; panels *= 2) {
      ops::StagedWay way =
          ops::BestGrid(*form, node, inputs, panels, most_held, [&](const ops::RankGrid& grid) {
            return form->moved_bytes == nullptr ? 0.0 : form->moved_bytes(node, inputs, grid);
          });
      way.held_bytes = HeldInStages(*form, node, inputs, way.grid);
      if (!best || ops::IsBetter(way, best_way, most_held)) {
        const Split cuts = CutsOf(rows->first, panels, form->needs_granules);
        best = {.form = place,
                .rows = cuts,
                .result_rows = CutsOfResult(*form, node, cuts, panels),
                .grid = way.grid};
        best_way = way;
      }
      if (way.held_bytes <= most_held) break;
    }
  }
  return best;
}

}  // namespace heddle::scheduler
