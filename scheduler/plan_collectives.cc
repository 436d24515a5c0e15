// SPDX-License-Identifier: Apache-2.0
// Large values between many ranks: reductions that are finished in parts, values that go to all ranks in
// chunks, and rows of all ranks that go to all (docs/distribution.md). All of it tasks and copies of two
// ranks each.
#include "core/programs/input_infos.h"
#include "scheduler/plan_collectives.h"

#include <algorithm>
#include <set>
#include <utility>

namespace heddle::scheduler {

void ReductionParts::Emit(const std::vector<RegisterId>& lists) {
  lists_ = lists;
  parts_ = Finish(Meet(0, ranks_));
  std::vector<std::vector<RegisterId>>& outputs = builder_.outputs_[id_];
  outputs.resize(ResultsOf(builder_.graph_[id_]).size(),
                 std::vector<RegisterId>(static_cast<size_t>(ranks_), kNoRegister));
  std::vector<RegisterId>& made = outputs[result_];
  if (units_.by_rows) {
    HEDDLE_CHECK(home_.IsSplit(), "rows of a result stay where they are finished");
    for (int32_t rank = 0; rank < ranks_; ++rank)
      made[static_cast<size_t>(rank)] = RowsOf(parts_, home_.split.Begin(rank), home_.split.End(rank), rank);
    return;
  }
  std::vector<RegisterId> columns(static_cast<size_t>(ranks_), kNoRegister);
  if (home_.IsEach())
    Spread(0, ranks_, parts_, &columns);
  else
    columns[static_cast<size_t>(home_.rank)] = RowsOf(parts_, 0, units_.count, home_.rank);
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    const RegisterId cells = columns[static_cast<size_t>(rank)];
    if (cells == kNoRegister) continue;
    const size_t task = AddStage(rank, ops::kAssembleParts, 0, units_.count, {cells});
    made[static_cast<size_t>(rank)] = builder_.AddOutput(task, ResultInfo());
  }
}

size_t ReductionParts::AddStage(int32_t rank, ops::ReductionStage stage, int64_t begin, int64_t end,
                                std::vector<RegisterId> consumed) {
  const size_t index = builder_.AddTask(rank, StreamKind::kCompute, TaskKind::kCompute, id_, Phase::kStage,
                                        std::move(consumed));
  Task& task = builder_.plan_.tasks[index];
  task.stage = ops::kStagesOfReduction * static_cast<int32_t>(result_) + stage;
  task.row_begin = begin;
  task.row_end = end;
  task.total_rows = units_.count;
  if (stage != ops::kJoinParts) builder_.last_task_[{id_, rank}] = index;
  return index;
}

RegisterId ReductionParts::UnitsOf(const Part& part, int64_t begin, int64_t end, int32_t rank) {
  if (part.rank == rank) return part.value;  // Whoever reads it takes what it needs.
  const bool is_exact = part.begin == begin && part.end == end && !IsList(part);
  const RegisterId cut =
      is_exact ? part.value
               : builder_.AddOutput(AddStage(part.rank, ops::kJoinParts, begin, end, {part.value}),
                                    ValueInfo::OfMatrix({kUnknown, kUnknown}));
  return builder_.AddCopy(cut, rank);
}

std::vector<std::pair<int64_t, int64_t>> ReductionParts::TargetsOf(
    int32_t first, int32_t last, const std::vector<std::vector<Part>>& children) const {
  const auto count = static_cast<size_t>(last - first);
  std::vector<std::pair<int64_t, int64_t>> targets(count);
  if (count == static_cast<size_t>(ranks_) && units_.by_rows && children.size() == count) {
    for (int32_t rank = 0; rank < ranks_; ++rank)
      targets[static_cast<size_t>(rank)] = {home_.split.Begin(rank), home_.split.End(rank)};
    return targets;
  }
  // In the order of what the ranks have, so that each keeps a share of it.
  std::vector<std::pair<int64_t, int32_t>> order;  // First unit, rank.
  for (int32_t rank = first; rank < last; ++rank) order.emplace_back(units_.count, rank);
  for (const std::vector<Part>& child : children)
    for (const Part& part : child) {
      int64_t& begin = order[static_cast<size_t>(part.rank - first)].first;
      begin = std::min(begin, part.begin);
    }
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < count; ++i)
    targets[static_cast<size_t>(order[i].second - first)] = {Bound(i, count), Bound(i + 1, count)};
  return targets;
}

int64_t ReductionParts::Bound(size_t i, size_t parts) const {
  const double share = static_cast<double>(i) / static_cast<double>(parts);
  if (!units_.triangle) return static_cast<int64_t>(share * static_cast<double>(units_.count) + 0.5);
  const double cells = share * static_cast<double>(units_.RowsBefore(units_.count));
  int64_t low = 0, high = units_.count;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (static_cast<double>(units_.RowsBefore(middle)) < cells)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

std::vector<ReductionParts::Meeting> ReductionParts::Meet(int32_t first, int32_t last) {
  std::vector<std::vector<Part>> children;
  if (ranks_ <= kMostExchanged) {
    for (int32_t rank = first; rank < last; ++rank) children.push_back(PartsOf(rank, rank + 1));
  } else {
    const int32_t middle = first + (last - first) / 2;
    children = {PartsOf(first, middle), PartsOf(middle, last)};
  }
  for (std::vector<Part>& child : children)
    std::sort(child.begin(), child.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
  const std::vector<std::pair<int64_t, int64_t>> targets = TargetsOf(first, last, children);
  targets_[{first, last}] = targets;
  std::vector<Meeting> meetings;
  for (int32_t rank = first; rank < last; ++rank) {
    const auto [begin, end] = targets[static_cast<size_t>(rank - first)];
    std::set<int64_t> bounds = {begin, end};
    for (const std::vector<Part>& child : children)
      for (const Part& part : child)
        for (const int64_t bound : {part.begin, part.end})
          if (bound > begin && bound < end) bounds.insert(bound);
    for (auto bound = bounds.begin(); std::next(bound) != bounds.end(); ++bound) {
      Meeting meeting{*bound, *std::next(bound), rank, {}};
      for (const std::vector<Part>& child : children) {
        const auto behind =
            std::upper_bound(child.begin(), child.end(), meeting.begin,
                             [](int64_t unit, const Part& part) { return unit < part.begin; });
        meeting.values.push_back(UnitsOf(*std::prev(behind), meeting.begin, meeting.end, rank));
      }
      meetings.push_back(std::move(meeting));
    }
  }
  return meetings;
}

std::vector<ReductionParts::Part> ReductionParts::PartsOf(int32_t first, int32_t last) {
  if (last - first == 1) return {{0, units_.count, first, lists_[static_cast<size_t>(first)]}};
  std::vector<Part> parts;
  for (const Meeting& m : Meet(first, last))
    parts.push_back({m.begin, m.end, m.rank,
                     builder_.AddOutput(AddStage(m.rank, ops::kJoinParts, m.begin, m.end, m.values),
                                        ValueInfo::OfMatrix({kUnknown, kUnknown}))});
  return parts;
}

ValueInfo ReductionParts::FinishedInfo(int64_t begin, int64_t end) const {
  const int64_t rows = units_.RowsBefore(end) - units_.RowsBefore(begin);
  if (!units_.by_rows) return ValueInfo::OfMatrix({rows, 1});
  ValueInfo info = ResultInfo();
  info.shape.rows = rows;
  return info;
}

std::vector<ReductionParts::Part> ReductionParts::Finish(const std::vector<Meeting>& meetings) {
  std::vector<Part> parts;
  for (const Meeting& m : meetings)
    parts.push_back({m.begin, m.end, m.rank,
                     builder_.AddOutput(AddStage(m.rank, ops::kFinishPart, m.begin, m.end, m.values),
                                        FinishedInfo(m.begin, m.end))});
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
  return parts;
}

RegisterId ReductionParts::RowsOf(const std::vector<Part>& parts, int64_t begin, int64_t end, int32_t rank) {
  if (begin == end)  // No rows: of whatever list.
    return builder_.AddOutput(
        AddStage(rank, ops::kFinishPart, begin, end, {lists_[static_cast<size_t>(rank)]}),
        FinishedInfo(begin, end));
  std::vector<RegisterId> rows;
  const auto behind = std::upper_bound(parts.begin(), parts.end(), begin,
                                       [](int64_t unit, const Part& part) { return unit < part.begin; });
  for (auto part = std::prev(behind); part != parts.end() && part->begin < end; ++part) {
    const int64_t before = units_.RowsBefore(part->begin);
    const RegisterId own = builder_.Slice(id_, part->value, Axis::kRows,
                                          units_.RowsBefore(std::max(begin, part->begin)) - before,
                                          units_.RowsBefore(std::min(end, part->end)) - before, part->rank);
    rows.push_back(part->rank == rank ? own : builder_.AddCopy(own, rank));
  }
  if (rows.size() == 1) return rows[0];
  return builder_.AddOutput(
      builder_.AddTask(rank, StreamKind::kCompute, TaskKind::kCompute, id_, Phase::kGather, std::move(rows)),
      FinishedInfo(begin, end));
}

void ReductionParts::Spread(int32_t first, int32_t last, const std::vector<Part>& parts,
                            std::vector<RegisterId>* columns) {
  if (ranks_ <= kMostExchanged || last - first == 1) {
    for (int32_t rank = first; rank < last; ++rank)
      (*columns)[static_cast<size_t>(rank)] = RowsOf(parts, 0, units_.count, rank);
    return;
  }
  const int32_t middle = first + (last - first) / 2;
  for (const auto& [begin, end] : {std::pair(first, middle), std::pair(middle, last)}) {
    const auto known = targets_.find({begin, end});  // A rank alone had all units.
    const std::vector<std::pair<int64_t, int64_t>> targets =
        known != targets_.end() ? known->second : std::vector<std::pair<int64_t, int64_t>>{{0, units_.count}};
    std::vector<Part> half;
    for (int32_t rank = begin; rank < end; ++rank)
      if (const auto& [from, to] = targets[static_cast<size_t>(rank - begin)]; from < to)
        half.push_back({from, to, rank, RowsOf(parts, from, to, rank)});
    std::sort(half.begin(), half.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
    Spread(begin, end, half, columns);
  }
}

void PlanBuilder::EmitParts(NodeId id, std::vector<std::vector<RegisterId>>* partials,
                            std::vector<size_t>* results) {
  const Node& node = graph_[id];
  const Placement& placement = placements_[static_cast<size_t>(id)];
  const std::vector<ValueInfo> inputs = InputInfos(graph_, node);
  plan_.staged.push_back({id, placement.form, placement.cuts, placement.result_rows});
  std::vector<size_t> others;
  for (size_t list = 0; list < results->size(); ++list) {
    const size_t result = (*results)[list];
    if (!placement.in_parts[result]) {
      others.push_back(result);
      continue;
    }
    ReductionParts(*this, id, result, placement.staged->units(node, inputs, result))
        .Emit(std::exchange((*partials)[list], {}));
  }
  *results = std::move(others);
}

RegisterId PlanBuilder::ChunkOf(NodeId node, int32_t from, int32_t chunk, int32_t chunks, int32_t rank) {
  std::vector<RegisterId>& copies = chunks_[{node, chunk}];
  if (copies.empty()) copies.assign(static_cast<size_t>(ranks_), kNoRegister);
  if (const RegisterId there = copies[static_cast<size_t>(rank)]; there != kNoRegister) return there;
  RegisterId made = kNoRegister;
  if (rank == from) {
    const RegisterId whole = copies_[node][static_cast<size_t>(from)];
    const int64_t rows = graph_[node].info.shape.rows;
    made = Slice(node, whole, Axis::kRows, rows * chunk / chunks, rows * (chunk + 1) / chunks, from);
  } else {
    const int32_t number = (rank - from + ranks_) % ranks_;
    const int32_t before = (ParentInTree(number, chunk % 2, ranks_) + from) % ranks_;
    made = AddCopy(ChunkOf(node, from, chunk, chunks, before), rank);
  }
  chunks_[{node, chunk}][static_cast<size_t>(rank)] = made;
  return made;
}

RegisterId PlanBuilder::ChunkedCopy(NodeId node, int32_t from, int32_t chunks, int32_t rank) {
  std::vector<RegisterId> parts;
  for (int32_t chunk = 0; chunk < chunks; ++chunk) parts.push_back(ChunkOf(node, from, chunk, chunks, rank));
  return Join(node, std::move(parts), Axis::kRows, graph_[node].info, rank);
}

std::vector<RegisterId> PlanBuilder::GatherByDoubling(NodeId node, const Distribution& split, int32_t first,
                                                      int32_t last) {
  if (last - first == 1) return {Piece(node, split, first)};
  const int32_t middle = first + (last - first) / 2;
  const std::vector<RegisterId> low = GatherByDoubling(node, split, first, middle);
  const std::vector<RegisterId> high = GatherByDoubling(node, split, middle, last);
  std::vector<RegisterId> joined;
  for (int32_t rank = first; rank < last; ++rank) {
    const bool is_low = rank < middle;
    const auto own = static_cast<size_t>(is_low ? rank - first : rank - middle);
    std::vector<RegisterId> halves = {low[is_low ? own : own % low.size()],
                                      high[is_low ? own % high.size() : own]};
    RegisterId& other = halves[is_low ? 1 : 0];
    other = AddCopy(other, rank);
    ValueInfo info = graph_[node].info;
    info.shape.rows = split.split.End(last - 1) - split.split.Begin(first);
    joined.push_back(Join(node, std::move(halves), Axis::kRows, info, rank));
  }
  return joined;
}

int32_t ParentInTree(int32_t number, int tree, int32_t ranks) {
  // Positions 1 to `last` of an in-order tree: those with an odd number are its leaves. The second tree is
  // the first mirrored, or shifted by one, so that the leaves of one are inside the other.
  const int32_t last = ranks - 1;
  const auto position = [&](int32_t of) {
    if (tree == 0) return of;
    return last % 2 == 0 ? last + 1 - of : of % last + 1;
  };
  const auto number_at = [&](int32_t at) {
    if (tree == 0) return at;
    return last % 2 == 0 ? last + 1 - at : (at + last - 2) % last + 1;
  };
  int32_t at = position(number);
  for (;;) {
    const int32_t step = at & -at;
    const int32_t up = (at & (2 * step)) != 0 ? at - step : at + step;
    // The root, the largest power of two, has nothing above it that is there.
    if ((at & (at - 1)) == 0 && 2 * at > last) return 0;
    at = up;
    if (at <= last) return number_at(at);
  }
}

}  // namespace heddle::scheduler
