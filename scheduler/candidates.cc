// SPDX-License-Identifier: Apache-2.0
#include "scheduler/candidates.h"

#include <algorithm>

#include "core/values/panels.h"
#include "ops/base/split.h"
#include "ops/base/stages.h"
#include "scheduler/estimate.h"
#include "scheduler/transition.h"

namespace heddle::scheduler {
namespace {

// Larger results are not computed on every rank: memory would hold as many copies.
constexpr int64_t kMostReplicatedBytes = int64_t{8} << 20;
// A variable is cut by columns although it is there by rows only where each rank gets some of them.
constexpr int64_t kLeastColumnsToCut = 16;

// Each cut at the next granule of rows, or chunk of columns, below.
Split Aligned(Split split, Axis axis) {
  const int64_t length = split.Length(), granule = axis == Axis::kRows ? Granule(length) : kColumnChunk;
  for (int64_t& cut : split.cuts)
    if (cut != length) cut -= cut % granule;
  return split;
}

void AddOnce(Split split, std::vector<Split>* splits) {
  if (std::find(splits->begin(), splits->end(), split) == splits->end()) splits->push_back(std::move(split));
}

bool HasEvenRows(const Node& node) {
  const Scalar* const even = node.FindAttribute("even.rows");
  return even != nullptr && even->AsBoolean();
}

Split EvenRows(int64_t rows, int32_t ranks) {
  Split even;
  for (int64_t rank = 0; rank <= ranks; ++rank)
    even.cuts.push_back(rows / ranks * rank + rows % ranks * rank / ranks);
  return even;
}

}  // namespace

CandidateFinder::CandidateFinder(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                                 const ScheduleOptions& options)
    : graph_(graph), options_(options), splits_(graph.nodes.size()) {
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (!graph_[id].Is("variable")) continue;
    const auto found = live_in.find(graph_[id].Text("name"));
    if (found == live_in.end() || !found->second.IsSplit()) continue;
    const Split& split = found->second.split;
    splits_[static_cast<size_t>(id)] = {
        .always = true, .by_rows = split.axis == Axis::kRows, .by_columns = split.axis == Axis::kColumns};
    AddOnce({.cuts = split.cuts}, &cuts_by_length_[split.Length()]);
    // What stays as it is for many runs may be cut again once.
    Splits& splits = splits_[static_cast<size_t>(id)];
    const std::string& name = found->first;
    splits.by_columns |= options_.lasting.contains(name) && graph_[id].info.IsMatrix() &&
                         graph_[id].info.shape.columns >= kLeastColumnsToCut * options_.ranks;
    const auto copies = options_.copies.find(name);
    if (copies == options_.copies.end()) continue;
    for (const Distribution& copy : copies->second) {
      if (!copy.IsSplit()) continue;
      splits.by_rows |= copy.split.axis == Axis::kRows;
      splits.by_columns |= copy.split.axis == Axis::kColumns;
      AddOnce({.cuts = copy.split.cuts}, &cuts_by_length_[copy.split.Length()]);
    }
  }
}

std::vector<Split> CandidateFinder::CutsOf(int64_t length, Axis axis, bool needs_granules) const {
  std::vector<Split> ways = {Distribution::SplitRows(length, options_.ranks).split};
  if (needs_granules) ways[0] = Aligned(ways[0], axis);
  if (const auto found = cuts_by_length_.find(length); found != cuts_by_length_.end()) {
    for (const Split& split : found->second) {
      if (needs_granules || axis == Axis::kRows) AddOnce(Aligned(split, axis), &ways);
      if (!needs_granules) AddOnce(split, &ways);
    }
  }
  for (Split& split : ways) split.axis = axis;
  return ways;
}

bool CandidateFinder::IsReadByRows(const Node& node, size_t i) const {
  return node.inputs[i] != kNoNode &&
         ops::InputUseOf(node, infos_, static_cast<int>(i)) == ops::InputUse::kRows;
}

// Rows of the inputs that are read by rows, else of the result.
int64_t CandidateFinder::RowsRead(const Node& node) const {
  int64_t rows = ResultsOf(node)[0].shape.rows;
  for (size_t i = 0; i < infos_.size(); ++i)
    if (IsReadByRows(node, i)) rows = infos_[i].shape.rows;
  return rows;
}

double CandidateFinder::LongestShare(const Split& cuts) const {
  int64_t longest = 0;
  for (int32_t rank = 0; rank < options_.ranks; ++rank)
    longest = std::max(longest, cuts.End(rank) - cuts.Begin(rank));
  return static_cast<double>(longest) / static_cast<double>(std::max<int64_t>(cuts.Length(), 1));
}

double CandidateFinder::MoveNs(double bytes, int messages) const {
  return NanosecondsOf(Transition{bytes, bytes, messages}, options_.constants);
}

std::vector<CandidateFinder::Candidate> CandidateFinder::Of(NodeId id) {
  const Node& node = graph_[id];
  const ops::Operator& op = *ops::FindOperator(node.op);
  infos_.clear();
  for (const NodeId input : node.inputs)
    infos_.push_back(input == kNoNode ? ValueInfo{} : graph_[input].info);
  node_ns_ = NodeNs(graph_, node, options_.constants) + options_.constants.operator_ns;

  std::vector<Candidate> candidates;
  const ops::Sharing sharing = ops::SharingOf(
      node, infos_, [&](size_t i) { return IsSplitByRows(node.inputs[i]); }, options_.min_distributed_bytes);
  // What nobody has counted yet is cut nowhere.
  const bool is_counted = sharing == ops::Sharing::kNone || RowsRead(node) != kUnknown;
  switch (is_counted ? sharing : ops::Sharing::kNone) {
    case ops::Sharing::kNone: {
      // Rows that are few, each of much work.
      const bool is_even = !op.effect && HasEvenRows(node) && RowsRead(node) > 1 &&
                           ops::RowRuleOf(node, infos_) == ops::RowRule::kReduce;
      if (is_even) AddSplit(node, ops::RowRule::kReduce, true, &candidates);
      break;
    }
    case ops::Sharing::kRowRule: {
      const ops::RowRule rule = ops::RowRuleOf(node, infos_);
      AddSplit(node, rule, rule == ops::RowRule::kReduce && HasEvenRows(node), &candidates);
      AddStagedForms(node, op, false, &candidates);
      break;
    }
    case ops::Sharing::kStages:
      AddStagedForms(node, op, op.row_rule != nullptr && ops::RowRuleOf(node, infos_) != ops::RowRule::kWhole,
                     &candidates);
      break;
    case ops::Sharing::kMovedRows: AddMoved(node, Axis::kRows, &candidates); break;
  }
  AddColumns(node, op, &candidates);
  bool is_large = true;
  if (candidates.empty()) {
    AddFewRows(node, op, &candidates);
    is_large = node.info.IsSized() && KnownBytes(node.info) >= options_.min_distributed_bytes;
  }
  if (candidates.empty()) return WholeOnes(node, op);
  Splits& splits = splits_[static_cast<size_t>(id)];
  splits.always = is_large;
  for (const Candidate& candidate : candidates) {
    const Distribution& result = candidate.placement.result;
    splits.always &= result.IsSplit();
    splits.by_rows |= result.IsSplit() && result.split.axis == Axis::kRows;
    splits.by_columns |= result.IsSplit() && result.split.axis == Axis::kColumns;
  }
  return candidates;
}

std::vector<CandidateFinder::Candidate> CandidateFinder::WholeOnes(const Node& node,
                                                                   const ops::Operator& op) {
  std::vector<Candidate> candidates;
  const auto add = [&](const Distribution& where, double ns) {
    candidates.push_back(
        {{.result = where, .inputs = std::vector<Distribution>(node.inputs.size(), where), .reduced = where},
         ns});
  };
  int64_t bytes = 0;
  for (const ValueInfo& result : ResultsOf(node))
    bytes = std::max(bytes, result.IsSized() ? KnownBytes(result) : INT64_MAX);
  const bool may_replicate = op.pure && !op.effect && !op.files && bytes <= kMostReplicatedBytes;
  if (may_replicate) add(Distribution::Each(), node_ns_ * kReplicated);
  add(Distribution::One(), node_ns_);
  return candidates;
}

void CandidateFinder::AddSplit(const Node& node, ops::RowRule rule, bool has_even_rows,
                               std::vector<Candidate>* candidates) {
  const bool reduces = rule == ops::RowRule::kReduce || rule == ops::RowRule::kMixed;
  const int64_t rows = RowsRead(node);
  const std::vector<Split> ways =
      has_even_rows ? std::vector<Split>{EvenRows(rows, options_.ranks)} : CutsOf(rows, Axis::kRows, reduces);
  const std::vector<ops::PayloadUnits> reduced =
      reduces ? ReducedResults(node, rule) : std::vector<ops::PayloadUnits>();
  double reduced_bytes = 0;
  for (const ops::PayloadUnits& units : reduced) reduced_bytes += units.bytes;
  const double held_bytes = ops::HeldByRowRule(node, infos_, options_.ranks);
  for (const Split& cuts : ways) {
    const Distribution split{.kind = Distribution::Kind::kSplit, .split = cuts};
    Placement placement{.result = split, .split = true, .rule = rule, .cuts = cuts, .total_rows = rows};
    for (size_t i = 0; i < infos_.size(); ++i)
      placement.inputs.push_back(IsReadByRows(node, i) ? split : Distribution::Each());
    double ns = node_ns_ * LongestShare(cuts);
    // Rows that are few, each of much work, are few bytes: every rank puts them together for itself.
    const auto add = [&](const Distribution& reduced, double more_ns) {
      placement.reduced = reduced;
      if (rule == ops::RowRule::kReduce) placement.result = reduced;
      candidates->push_back({placement, ns + more_ns, held_bytes});
    };
    if (!reduces) {
      add(Distribution::One(), 0);
    } else {
      const bool has_effect = ops::FindOperator(node.op)->effect;
      const double finish_ns = FinishNs(ListsToOne(reduced_bytes, NodesOfLists(cuts), 0));
      if (!has_effect &&
          (has_even_rows || (options_.ranks <= kMostDirectRanks && reduced_bytes <= kMostReplicatedBytes)))
        add(Distribution::Each(), finish_ns * kReplicated);
      if (!has_even_rows) add(Distribution::One(), finish_ns);
      if (!has_even_rows && !has_effect) AddParted(node, {placement, ns, held_bytes}, reduced, candidates);
    }
  }
}

void CandidateFinder::AddMoved(const Node& node, Axis axis, std::vector<Candidate>* candidates) {
  double bytes = 0;
  for (const ValueInfo& input : infos_) bytes += BytesToMove(input);
  const int64_t length = axis == Axis::kRows ? node.info.shape.rows : node.info.shape.columns;
  for (const Split& cuts : CutsOf(length, axis, false)) {
    Placement placement{.result = {.kind = Distribution::Kind::kSplit, .split = cuts},
                        .split = true,
                        .cuts = cuts,
                        .total_rows = length,
                        .moves_rows = true};
    placement.inputs.assign(node.inputs.size(), Distribution::Each());
    candidates->push_back({placement, node_ns_ * LongestShare(cuts) + MoveNs(bytes / options_.ranks, 1)});
  }
}

}  // namespace heddle::scheduler
