// SPDX-License-Identifier: Apache-2.0
// Candidates by columns, and those that read by rows what is there by columns.
#include <algorithm>
#include <utility>

#include "core/values/panels.h"
#include "ops/base/split.h"
#include "ops/index/ranges.h"
#include "scheduler/candidates.h"
#include "scheduler/transition.h"

namespace heddle::scheduler {

bool CandidateFinder::IsSplitByRows(NodeId input) const {
  const Splits& splits = splits_[static_cast<size_t>(input)];
  const int64_t rows = graph_[input].info.shape.rows;
  return splits.always && (splits.by_rows || rows > Granule(std::max<int64_t>(rows, 0)));
}

bool CandidateFinder::MayBeByColumns(NodeId input) const {
  return splits_[static_cast<size_t>(input)].by_columns ||
         ops::IsWide(graph_[input].info, options_.min_distributed_bytes);
}

void CandidateFinder::AddFewRows(const Node& node, const ops::Operator& op,
                                 std::vector<Candidate>* candidates) {
  if (op.effect || ops::RowRuleOf(node, infos_) != ops::RowRule::kRowWise || RowsRead(node) < 2) return;
  for (size_t i = 0; i < infos_.size(); ++i) {
    if (!IsReadByRows(node, i) || !splits_[static_cast<size_t>(node.inputs[i])].always) continue;
    return AddSplit(node, ops::RowRule::kRowWise, true, candidates);
  }
}

void CandidateFinder::AddColumns(const Node& node, const ops::Operator& op,
                                 std::vector<Candidate>* candidates) {
  if (op.effect || node.info.IsTuple() || (node.info.IsTabular() && !node.info.IsSized())) return;
  for (size_t i = 0; i < infos_.size(); ++i)
    if (node.inputs[i] != kNoNode && infos_[i].IsTabular() && !infos_[i].IsSized()) return;
  if (node.info.IsMatrix() && (op.role == ops::Role::kCbind || op.role == ops::Role::kRange))
    AddMovedColumns(node, op, candidates);
  for (const auto& [place, form] : ops::StagedFormsOf(op, node, infos_, Axis::kColumns)) {
    // Of bounds that are literals each rank fetches its columns.
    if (form->result == ops::StagedResult::kColumns && FirstOfRange(node) != kUnknown) continue;
    const bool makes_columns = ops::RowRuleOf(node, infos_) == ops::RowRule::kGenerate;
    // What has rows of one operand beside columns of the other is for columns that are there.
    bool is_worth_it = form->crossed_inputs == 0 && ops::IsWide(node.info, options_.min_distributed_bytes);
    bool must = false;
    bool is_read = makes_columns;
    // No rank gets all of what is split and larger than that of which it would get a part.
    double part_bytes = 0, gathered_bytes = 0;
    for (size_t i = 0; i < infos_.size(); ++i) {
      const NodeId input = node.inputs[i];
      if (input == kNoNode || !infos_[i].IsTabular()) continue;
      const bool always = splits_[static_cast<size_t>(input)].always;
      const bool is_part = ops::IsCrossed(*form, i) ||
                           ops::InputUseOf(*form, node, infos_, static_cast<int>(i)) == ops::InputUse::kRows;
      if (!is_part) {
        if (always) gathered_bytes = std::max(gathered_bytes, BytesToMove(infos_[i]));
        continue;
      }
      is_read = true;
      part_bytes += BytesToMove(infos_[i]);
      is_worth_it |= form->crossed_inputs != 0
                         ? splits_[static_cast<size_t>(input)].by_columns && !ops::IsCrossed(*form, i)
                         : MayBeByColumns(input);
      must |= always;
    }
    if (!is_read || !is_worth_it || gathered_bytes > part_bytes) continue;
    if (candidates->empty() && !must) *candidates = WholeOnes(node, op);
    AddStaged(node, place, *form, false, candidates);
  }
}

int64_t CandidateFinder::FirstOfRange(const Node& node) const {
  const auto bound = [&](size_t i) {
    const NodeId input = i < node.inputs.size() ? node.inputs[i] : kNoNode;
    return input == kNoNode || !graph_[input].Is("literal") ? nullptr : graph_[input].FindAttribute("value");
  };
  const bool has_all_rows = node.inputs.size() > 2 && node.inputs[1] == kNoNode && node.inputs[2] == kNoNode;
  if (!has_all_rows || bound(3) == nullptr || bound(4) == nullptr) return kUnknown;
  return ops::GivenRange(bound(3), bound(4)).Begin();
}

void CandidateFinder::AddMovedColumns(const Node& node, const ops::Operator& op,
                                      std::vector<Candidate>* candidates) {
  const bool is_range = op.role == ops::Role::kRange;
  const int64_t first = is_range ? FirstOfRange(node) : 0;
  if (first == kUnknown) return;
  bool is_worth_it = ops::IsWide(node.info, options_.min_distributed_bytes), must = false;
  for (size_t i = 0; i < (is_range ? 1 : infos_.size()); ++i) {
    is_worth_it |= MayBeByColumns(node.inputs[i]);
    must |= splits_[static_cast<size_t>(node.inputs[i])].always;
  }
  if (!is_worth_it) return;
  if (candidates->empty() && !must) *candidates = WholeOnes(node, op);
  const size_t before = candidates->size();
  AddMoved(node, Axis::kColumns, candidates);
  for (size_t i = before; is_range && i < candidates->size(); ++i)
    (*candidates)[i].placement.first_moved = first;
  if (!is_range) return;
  // Also: every rank keeps the columns within bounds that it has.
  Candidate stays = (*candidates)[before];
  Split& cuts = stays.placement.cuts;
  cuts = CutsOf(infos_[0].shape.columns, Axis::kColumns, false)[0];
  for (int64_t& cut : cuts.cuts) cut = std::clamp<int64_t>(cut - first, 0, node.info.shape.columns);
  stays.placement.result.split = cuts;
  stays.own_ns = node_ns_ * LongestShare(cuts);
  candidates->push_back(std::move(stays));
}

}  // namespace heddle::scheduler
