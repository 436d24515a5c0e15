// SPDX-License-Identifier: Apache-2.0
#include "scheduler/staged_panels.h"

#include <algorithm>
#include <utility>

#include "core/values/panels.h"
#include "ops/base/split.h"
#include "ops/panels/staged_run.h"

namespace heddle::scheduler {
namespace {

// With more panels what they send to each other is too small to be worth a read.
constexpr int32_t kMostPanels = 256;

bool ReadsByRows(const ops::StagedForm& form, const Node& node, std::span<const ValueInfo> inputs, size_t i) {
  return node.inputs[i] != kNoNode &&
         ops::InputUseOf(form, node, inputs, static_cast<int>(i)) == ops::InputUse::kRows;
}

// Rows of the first input that is read by rows, which the panels cut, and of the shortest and longest one.
struct RowCounts {
  int64_t first = kUnknown, least = INT64_MAX, most = 0;
};
std::optional<RowCounts> RowsOf(const ops::StagedForm& form, const Node& node,
                                std::span<const ValueInfo> inputs) {
  RowCounts rows;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!ReadsByRows(form, node, inputs, i)) continue;
    if (!inputs[i].IsTabular() || !inputs[i].IsSized()) return std::nullopt;
    if (rows.first == kUnknown) rows.first = inputs[i].shape.rows;
    rows.least = std::min(rows.least, inputs[i].shape.rows);
    rows.most = std::max(rows.most, inputs[i].shape.rows);
  }
  if (rows.first == kUnknown) return std::nullopt;
  return rows;
}

// Of the largest operand that is read by rows.
double MostBytesByRows(const ops::StagedForm& form, const Node& node, std::span<const ValueInfo> inputs) {
  double bytes = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (ReadsByRows(form, node, inputs, i)) bytes = std::max(bytes, ops::BytesToMove(inputs[i]));
  return bytes;
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

// Each part in so many, at granules where it has enough of them.
Split Refined(const Split& rows, int32_t panels) {
  const int64_t granule = Granule(rows.Length());
  Split refined{.axis = rows.axis, .cuts = {0}};
  for (size_t part = 0; part + 1 < rows.cuts.size(); ++part) {
    const int64_t begin = rows.cuts[part], end = rows.cuts[part + 1];
    const int64_t granules = CeilDivide(end, granule) - begin / granule;
    // As of CutRow: few nodes of a reduction's tree.
    const int64_t unit = granule * FloorPowerOfTwo(std::max<int64_t>(1, granules / (4 * int64_t{panels})));
    const int64_t first = begin / unit, units = CeilDivide(end, unit) - first;
    for (int32_t panel = 1; panel <= panels; ++panel)
      refined.cuts.push_back(
          panel == panels ? end : std::clamp((first + units * panel / panels) * unit, begin, end));
  }
  return refined;
}

}  // namespace

double Unevenness(const Split& rows) {
  if (rows.cuts.empty()) return 1;
  const auto parts = static_cast<int32_t>(rows.cuts.size()) - 1;
  int64_t longest = 0;
  for (int32_t part = 0; part < parts; ++part) longest = std::max(longest, rows.End(part) - rows.Begin(part));
  return static_cast<double>(longest) * parts / static_cast<double>(std::max<int64_t>(1, rows.Length()));
}

double HeldInStages(const ops::StagedForm& form, const Node& node, std::span<const ValueInfo> inputs,
                    const ops::RankGrid& grid) {
  return HeldInStages(form, node, inputs, grid, {}, {});
}

double HeldInStages(const ops::StagedForm& form, const Node& node, std::span<const ValueInfo> inputs,
                    const ops::RankGrid& grid, const Split& rows, const Split& result_rows) {
  const double uneven = Unevenness(rows), uneven_result = Unevenness(result_rows);
  if (form.held_bytes != nullptr) return form.held_bytes(node, inputs, grid) * uneven;
  constexpr double kCopies = 3;  // What a stage reads, what it works with and what it makes.
  double bytes = ops::WorkingBytesOf(node, inputs) / kCopies, result_bytes = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (ReadsByRows(form, node, inputs, i)) bytes += ops::BytesToMove(inputs[i]);
  for (const ValueInfo& result : ResultsOf(node)) result_bytes += ops::BytesToMove(result);
  return kCopies * (bytes * uneven + result_bytes * uneven_result) / grid.ranks;
}

std::optional<StagedPanels> StagesInPanels(const Node& node, std::span<const ValueInfo> inputs,
                                           double most_held) {
  const ops::Operator* const op = ops::FindOperator(node.op);
  if (op == nullptr || op->staged == nullptr) return std::nullopt;
  std::optional<StagedPanels> best;
  ops::StagedWay best_way;
  for (const auto& [place, form] : ops::StagedFormsOf(*op, node, inputs)) {
    if (!ops::MakesPanels(*form)) continue;
    const std::optional<RowCounts> rows = RowsOf(*form, node, inputs);
    const bool is_sized = form->result != ops::StagedResult::kRows || ResultsOf(node)[0].IsSized();
    if (!rows || !is_sized) continue;
    const int64_t granules = CeilDivide(rows->most, Granule(rows->most));
    const int64_t parts = form->needs_granules || granules > 1 ? granules : rows->most;
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

std::optional<StagedPanels> StagesInPanels(const StagedNode& staged, const Node& node,
                                           std::span<const ValueInfo> inputs, int32_t ranks,
                                           double least_bytes, double most_held) {
  const ops::Operator* const op = ops::FindOperator(node.op);
  const ops::StagedForm* const form = op == nullptr ? nullptr : ops::StagedFormAt(*op, staged.form);
  if (form == nullptr || !ops::CanShareInPanels(*form) || staged.rows.cuts.empty()) return std::nullopt;
  const std::optional<RowCounts> rows = RowsOf(*form, node, inputs);
  // Of operands with other rows the plan has other cuts.
  if (!rows || rows->least != staged.rows.Length() || rows->most != rows->least) return std::nullopt;
  if (MostBytesByRows(*form, node, inputs) * Unevenness(staged.rows) / ranks < least_bytes)
    return std::nullopt;
  const int32_t most = kMostPanels / ranks;
  if (most < 2) return std::nullopt;
  const int64_t granules = CeilDivide(rows->most, Granule(rows->most));
  StagedPanels stages{.form = staged.form};
  for (int32_t panels = 2;; panels = std::min(2 * panels, most)) {
    stages.rows = Refined(staged.rows, panels);
    if (!staged.result_rows.cuts.empty()) stages.result_rows = Refined(staged.result_rows, panels);
    stages.grid.ranks = ranks * panels;
    if (HeldInStages(*form, node, inputs, stages.grid, stages.rows, stages.result_rows) <= most_held) break;
    if (panels == most || ranks * panels >= granules) break;
  }
  return stages;
}

void SetStages(const StagedPanels& stages, NodeId node, Plan* plan) {
  const auto at = std::lower_bound(plan->staged.begin(), plan->staged.end(), node,
                                   [](const StagedNode& staged, NodeId id) { return staged.node < id; });
  StagedNode staged{node, stages.form, stages.rows, stages.result_rows};
  if (at == plan->staged.end() || at->node != node)
    plan->staged.insert(at, std::move(staged));
  else
    *at = std::move(staged);
  if (stages.grid.columns > 1)
    plan->graph[node].SetAttribute(ops::kGridColumns, Scalar(int64_t{stages.grid.columns}));
}

int64_t BytesOfPart(const StagedPanels& stages, const Node& node, std::span<const ValueInfo> inputs,
                    int32_t ranks) {
  const ops::StagedForm& form = *ops::StagedFormAt(*ops::FindOperator(node.op), stages.form);
  const auto panels = static_cast<int32_t>(stages.rows.cuts.size()) - 1;
  const double panel = MostBytesByRows(form, node, inputs) * Unevenness(stages.rows) / panels;
  return static_cast<int64_t>(panel / (ranks - 1));
}

}  // namespace heddle::scheduler
