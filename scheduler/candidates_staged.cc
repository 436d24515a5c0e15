// SPDX-License-Identifier: Apache-2.0
// Operators that all ranks compute in stages, as candidates.
#include <algorithm>
#include <iterator>
#include <utility>

#include "core/values/panels.h"
#include "ops/base/split.h"
#include "ops/panels/staged_run.h"
#include "scheduler/candidates.h"
#include "scheduler/transition.h"

namespace heddle::scheduler {
namespace {

// Those that a rank has memory for; where there are none, what takes least.
void KeepThoseThatFit(double most_held, std::vector<CandidateFinder::Candidate>* candidates) {
  const auto is_larger = [&](const auto& candidate) { return candidate.held_bytes > most_held; };
  if (std::all_of(candidates->begin(), candidates->end(), is_larger)) {
    const auto least =
        std::min_element(candidates->begin(), candidates->end(),
                         [](const auto& a, const auto& b) { return a.held_bytes < b.held_bytes; });
    most_held = least->held_bytes;
  }
  candidates->erase(std::remove_if(candidates->begin(), candidates->end(), is_larger), candidates->end());
}

}  // namespace

void CandidateFinder::AddStagedForms(const Node& node, const ops::Operator& op, bool on_last,
                                     std::vector<Candidate>* candidates) {
  const auto forms = ops::StagedFormsOf(op, node, infos_);
  if (forms.empty()) return;
  // What is split by columns does not pass through a plan in panels.
  const auto makes_panels = [](const auto& form) { return ops::MakesPanels(*form.second); };
  const bool must_make_panels = options_.in_panels && std::any_of(forms.begin(), forms.end(), makes_panels);
  for (const auto& form : forms)
    if (!must_make_panels || makes_panels(form))
      AddStaged(node, form.first, *form.second, on_last, candidates);
  KeepThoseThatFit(
      ops::MostHeldBytes(node, infos_, options_.ranks, options_.min_distributed_bytes, options_.memory_bytes),
      candidates);
}

void CandidateFinder::AddStaged(const Node& node, int32_t place, const ops::StagedForm& form, bool on_last,
                                std::vector<Candidate>* candidates) {
  const auto reads_rows = [&](size_t i) {
    return node.inputs[i] != kNoNode &&
           ops::InputUseOf(form, node, infos_, static_cast<int>(i)) == ops::InputUse::kRows;
  };
  const auto length = [&](const ValueInfo& info) {
    return form.axis == Axis::kRows ? info.shape.rows : info.shape.columns;
  };
  int64_t rows = length(ResultsOf(node)[0]);
  for (size_t i = infos_.size(); i-- > 0;)
    if (reads_rows(i)) rows = length(infos_[i]);
  const double most_held =
      ops::MostHeldBytes(node, infos_, options_.ranks, options_.min_distributed_bytes, options_.memory_bytes);
  for (const Split& cuts : CutsOf(rows, form.axis, form.needs_granules)) {
    const Distribution split{.kind = Distribution::Kind::kSplit, .split = cuts};
    const Distribution crossed{.kind = Distribution::Kind::kSplit, .split = {.cuts = cuts.cuts}};
    Placement placement{.split = true, .cuts = cuts, .total_rows = rows, .staged = &form, .form = place};
    for (size_t i = 0; i < infos_.size(); ++i) {
      if (ops::IsCrossed(form, i))
        placement.inputs.push_back(crossed);
      else if (!reads_rows(i))
        placement.inputs.push_back(Distribution::Each());
      else if (length(infos_[i]) == rows)
        placement.inputs.push_back(split);
      else
        placement.inputs.push_back(Distribution::SplitRows(infos_[i].shape.rows, options_.ranks));
    }
    switch (form.result) {
      case ops::StagedResult::kSameRows:
      case ops::StagedResult::kSameColumns: placement.result = split; break;
      case ops::StagedResult::kTurned:
        placement.result = split;
        placement.result.split.axis = form.axis == Axis::kRows ? Axis::kColumns : Axis::kRows;
        break;
      case ops::StagedResult::kRows:
        placement.result = Distribution::SplitRows(ResultsOf(node)[0].shape.rows, options_.ranks);
        break;
      case ops::StagedResult::kColumns:
        placement.result = Distribution::SplitRows(ResultsOf(node)[0].shape.columns, options_.ranks);
        placement.result.split.axis = Axis::kColumns;
        break;
      case ops::StagedResult::kUneven: placement.result = {.kind = Distribution::Kind::kSplit}; break;
      case ops::StagedResult::kEach: placement.result = Distribution::Each(); break;
      case ops::StagedResult::kFinished: placement.result = Distribution::One(); break;
    }
    placement.result_rows = placement.result.split;
    if (on_last) {
      placement.result = Distribution::One(options_.ranks - 1);
      placement.result_rows.cuts.assign(static_cast<size_t>(options_.ranks) + 1, 0);
      placement.result_rows.cuts.back() = ResultsOf(node)[0].shape.rows;
      placement.grid_columns = form.on_grid ? options_.ranks : 1;
    }
    candidates->push_back(OnBestGrid(node, placement, most_held));
  }
}

CandidateFinder::Candidate CandidateFinder::OnBestGrid(const Node& node, const Placement& placement,
                                                       double most_held) const {
  const ops::StagedForm& form = *placement.staged;
  Candidate candidate{placement};
  const auto cost_on = [&](const ops::RankGrid& grid) {
    candidate.placement.grid_columns = grid.columns;
    const double moved = form.moved_bytes == nullptr ? 0 : form.moved_bytes(node, infos_, grid);
    const auto turns = static_cast<int>(std::count_if(form.stages.begin(), form.stages.end(), ops::HandsOn));
    const int messages = static_cast<int>(form.stages.size()) - 1 + (turns > 0 ? options_.ranks - 1 : 0);
    return StagedNs(node, candidate.placement) + MoveNs(moved / options_.ranks, messages);
  };
  if (placement.result.IsOne()) {  // It is made on the last rank, on a grid of one row.
    const ops::RankGrid grid = placement.Grid(options_.ranks);
    candidate.own_ns = cost_on(grid);
    if (form.held_bytes != nullptr) candidate.held_bytes = form.held_bytes(node, infos_, grid);
    return candidate;
  }
  const ops::StagedWay best = ops::BestGrid(form, node, infos_, options_.ranks, most_held, cost_on);
  candidate.placement.grid_columns = best.grid.columns;
  candidate.own_ns = best.cost;
  candidate.held_bytes = best.held_bytes;
  return candidate;
}

// Of a form by columns each rank reads all of what it does not read by columns.
double CandidateFinder::StagedNs(const Node& node, const Placement& placement) const {
  const double share = StagedShare(node, placement), ns = node_ns_ * share;
  if (placement.staged->axis == Axis::kRows) return ns;
  double read_bytes = 0;
  for (size_t i = 0; i < infos_.size(); ++i)
    read_bytes += BytesToMove(infos_[i]) * (placement.inputs[i].IsSplit() ? share : 1);
  return std::max(ns, read_bytes / options_.constants.read_bytes_per_ns);
}

double CandidateFinder::StagedShare(const Node& node, const Placement& placement) const {
  const ops::StagedForm& form = *placement.staged;
  const ops::RankGrid grid = placement.Grid(options_.ranks);
  if (form.on_grid) {
    int64_t longest = 0;
    for (int32_t row = 0; row < grid.rows(); ++row)
      longest = std::max(longest, placement.cuts.End(grid.At(row, grid.columns - 1)) -
                                      placement.cuts.Begin(grid.At(row, 0)));
    const int64_t columns = std::max<int64_t>(node.info.shape.columns, 1);
    return static_cast<double>(longest) / static_cast<double>(std::max<int64_t>(placement.cuts.Length(), 1)) *
           static_cast<double>(CeilDivide(columns, grid.columns)) / static_cast<double>(columns);
  }
  // Of inputs with different rows the work is shared out as that is which is shared out best.
  double share = LongestShare(placement.cuts);
  for (const Distribution& input : placement.inputs)
    if (input.IsSplit()) share = std::min(share, LongestShare(input.split));
  const auto turns = static_cast<double>(std::count_if(form.stages.begin(), form.stages.end(), ops::HandsOn));
  return turns == 0 ? share : share * (options_.ranks + turns - 1) / turns;
}

}  // namespace heddle::scheduler
