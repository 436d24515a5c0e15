// SPDX-License-Identifier: Apache-2.0
// Reductions of large results, as candidates: each rank finishes a part.
#include <algorithm>

#include "ops/base/stages.h"
#include "scheduler/candidates.h"
#include "scheduler/transition.h"

namespace heddle::scheduler {
namespace {

// Smaller lists are finished on one rank: parts of them would be messages of few bytes.
constexpr double kLeastPartedBytes = 256 << 10;

// Each rank has about as many cells of what all have finished.
Distribution FinishedParts(int32_t ranks) {
  Distribution parts{.kind = Distribution::Kind::kSplit};
  for (int64_t rank = 0; rank <= ranks; ++rank) parts.split.cuts.push_back(rank);
  return parts;
}

}  // namespace

// By result; of those that are rows, and of reductions that nobody can cut, without units.
std::vector<ops::PayloadUnits> CandidateFinder::ReducedResults(const Node& node, ops::RowRule rule,
                                                               const ops::StagedForm* parts) const {
  const ops::Operator& op = *ops::FindOperator(node.op);
  const std::span<const ValueInfo> results = ResultsOf(node);
  std::vector<ops::PayloadUnits> reduced(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (rule == ops::RowRule::kMixed && !op.reduces(node, i)) continue;
    if (parts != nullptr && i < ops::kMostReducedResults) reduced[i] = parts->units(node, infos_, i);
    if (reduced[i].count == 0) reduced[i] = {.bytes = BytesToMove(results[i])};
  }
  return reduced;
}

// Lists are read as they arrive, each node once.
double CandidateFinder::FinishNs(const Transition& lists) const {
  return NanosecondsOf(lists, options_.constants) +
         lists.slowest_bytes / options_.constants.read_bytes_per_ns;
}

void CandidateFinder::AddParted(const Node& node, Candidate partial, int32_t place,
                                const ops::StagedForm& form, const std::vector<ops::PayloadUnits>& reduced,
                                std::vector<Candidate>* candidates) {
  Placement& placement = partial.placement;
  placement.form = place;
  placement.staged = &form;
  double ns = partial.own_ns;
  const std::vector<int> nodes = NodesOfLists(placement.cuts);
  const std::span<const ValueInfo> results = ResultsOf(node);
  double together_bytes = 0;  // Of lists that are finished as ever.
  placement.in_parts.assign(results.size(), false);
  for (size_t i = 0; i < results.size(); ++i) {
    placement.in_parts[i] = reduced[i].count > 1 && reduced[i].bytes >= kLeastPartedBytes;
    if (!placement.in_parts[i])
      together_bytes += reduced[i].bytes;
    else
      ns += FinishNs(ListsInParts(reduced[i].bytes, nodes));
  }
  if (std::find(placement.in_parts.begin(), placement.in_parts.end(), true) == placement.in_parts.end())
    return;
  if (together_bytes > 0) ns += FinishNs(ListsToOne(together_bytes, nodes, 0));
  bool stays = true;  // Nothing is to be put together.
  for (const Distribution& where : {Distribution::One(), Distribution::Each()}) {
    placement.reduced = where;
    placement.result_at.assign(results.size(), where);
    double gather_ns = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      const bool is_rows =
          placement.rule == ops::RowRule::kMixed && !ops::FindOperator(node.op)->reduces(node, i);
      if (is_rows) placement.result_at[i] = {.kind = Distribution::Kind::kSplit, .split = placement.cuts};
      if (is_rows || (placement.in_parts[i] && reduced[i].by_rows)) {
        if (!is_rows) placement.result_at[i] = Distribution::SplitRows(reduced[i].count, options_.ranks);
        continue;
      }
      stays = false;
      if (!placement.in_parts[i]) continue;
      const Transition gathered =
          TransitionOf(reduced[i].bytes, FinishedParts(options_.ranks), where, options_.ranks);
      gather_ns += NanosecondsOf(gathered, options_.constants) +
                   BytesToMove(results[i]) / options_.constants.write_bytes_per_ns;
    }
    if (placement.rule == ops::RowRule::kReduce) {
      placement.result = placement.result_at[0];
      placement.result_rows = placement.result.split;
    }
    partial.own_ns = ns + gather_ns * (where.IsEach() ? kReplicated : 1);
    candidates->push_back(partial);
    if (stays) return;
  }
}

}  // namespace heddle::scheduler
