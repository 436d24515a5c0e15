// SPDX-License-Identifier: Apache-2.0
// Operators that all ranks compute in stages, as candidates.
#include <algorithm>
#include <iterator>
#include <utility>

#include "core/values/panels.h"
#include "ops/base/split.h"
#include "scheduler/candidates.h"
#include "scheduler/transition.h"

namespace heddle::scheduler {
namespace {

bool IsBetter(const CandidateFinder::Candidate& candidate, const CandidateFinder::Candidate& best,
              double most_held) {
  const bool fits = candidate.held_bytes <= most_held, best_fits = best.held_bytes <= most_held;
  if (fits != best_fits) return fits;
  if (!fits && candidate.held_bytes != best.held_bytes) return candidate.held_bytes < best.held_bytes;
  return candidate.own_ns < best.own_ns;
}

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
  for (const auto& [place, form] : forms) AddStaged(node, place, *form, on_last, candidates);
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
  const auto is_turned = [&](size_t i) {
    return form.is_turned != nullptr && form.is_turned(node, infos_, static_cast<int>(i));
  };
  const auto length = [&](const ValueInfo& info, bool turned) {
    return (form.axis == Axis::kRows) != turned ? info.shape.rows : info.shape.columns;
  };
  int64_t rows = length(ResultsOf(node)[0], false);
  for (size_t i = infos_.size(); i-- > 0;)
    if (reads_rows(i)) rows = length(infos_[i], is_turned(i));
  const double most_held =
      ops::MostHeldBytes(node, infos_, options_.ranks, options_.min_distributed_bytes, options_.memory_bytes);
  for (const Split& cuts : CutsOf(rows, form.axis, form.needs_granules)) {
    const Distribution split{.kind = Distribution::Kind::kSplit, .split = cuts};
    Distribution turned = split;
    turned.split.axis = form.axis == Axis::kRows ? Axis::kColumns : Axis::kRows;
    Placement placement{.split = true, .cuts = cuts, .total_rows = rows, .staged = &form, .form = place};
    for (size_t i = 0; i < infos_.size(); ++i) {
      if (!reads_rows(i))
        placement.inputs.push_back(Distribution::Each());
      else if (is_turned(i))
        placement.inputs.push_back(turned);
      else if (length(infos_[i], false) == rows)
        placement.inputs.push_back(split);
      else
        placement.inputs.push_back(Distribution::SplitRows(infos_[i].shape.rows, options_.ranks));
    }
    switch (form.result) {
      case ops::StagedResult::kSameRows:
      case ops::StagedResult::kSameColumns: placement.result = split; break;
      case ops::StagedResult::kTurned: placement.result = turned; break;
      case ops::StagedResult::kRows:
        placement.result = Distribution::SplitRows(ResultsOf(node)[0].shape.rows, options_.ranks);
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
  const auto on_grid = [&](int32_t columns) {
    Candidate candidate{placement};
    candidate.placement.grid_columns = columns;
    const ops::RankGrid grid = candidate.placement.Grid(options_.ranks);
    const double moved = form.moved_bytes == nullptr ? 0 : form.moved_bytes(node, infos_, grid);
    const auto turns = static_cast<int>(std::count_if(form.stages.begin(), form.stages.end(), ops::HandsOn));
    const int messages = static_cast<int>(form.stages.size()) - 1 + (turns > 0 ? options_.ranks - 1 : 0);
    candidate.own_ns =
        node_ns_ * StagedShare(node, candidate.placement) + MoveNs(moved / options_.ranks, messages);
    if (form.held_bytes != nullptr) candidate.held_bytes = form.held_bytes(node, infos_, grid);
    return candidate;
  };
  if (!form.on_grid || placement.result.IsOne()) return on_grid(placement.grid_columns);
  // A grid of one column is the row rule in more stages, which may need less memory.
  const bool fits_by_rows = ops::HeldByRowRule(node, infos_, options_.ranks) <= most_held;
  const int32_t least_columns = std::max(form.least_columns, fits_by_rows ? 2 : 1);
  Candidate best = on_grid(options_.ranks);
  for (int32_t columns = options_.ranks / 2; columns >= least_columns; --columns) {
    if (options_.ranks % columns != 0) continue;
    if (Candidate candidate = on_grid(columns); IsBetter(candidate, best, most_held))
      best = std::move(candidate);
  }
  return best;
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
