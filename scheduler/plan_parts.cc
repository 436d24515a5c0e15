// SPDX-License-Identifier: Apache-2.0
// Parts of values that are split by rows or by columns: slices on the ranks that have them, copies and joins.
#include <algorithm>
#include <utility>

#include "ops/base/operator.h"
#include "scheduler/plan_builder.h"

namespace heddle::scheduler {
namespace {

int64_t& LengthOf(Shape& shape, Axis axis) { return axis == Axis::kRows ? shape.rows : shape.columns; }

}  // namespace

RegisterId PlanBuilder::PartOf(NodeId node, Axis axis, int64_t begin, int64_t end, int32_t rank) {
  const Distribution& home = placements_[static_cast<size_t>(node)].result;
  if (!home.IsSplit()) {
    const int32_t from = home.IsEach() ? rank : home.rank;
    const RegisterId part = Slice(node, Piece(node, home, from), axis, begin, end, from);
    return from == rank ? part : AddCopy(part, rank);
  }
  if (home.split.axis != axis) return PartAcross(node, axis, begin, end, rank);
  std::vector<RegisterId> parts;
  for (int32_t from = 0; from < ranks_; ++from) {
    const int64_t first = std::max(begin, home.split.Begin(from)), last = std::min(end, home.split.End(from));
    if (first >= last) continue;
    const RegisterId part = Slice(node, Piece(node, home, from), axis, first - home.split.Begin(from),
                                  last - home.split.Begin(from), from);
    parts.push_back(from == rank ? part : AddCopy(part, rank));
  }
  if (parts.empty()) return Slice(node, Piece(node, home, rank), axis, 0, 0, rank);
  if (parts.size() == 1) return parts[0];
  ValueInfo info = graph_[node].info;
  LengthOf(info.shape, axis) = end - begin;
  return Join(node, std::move(parts), axis, info, rank);
}

RegisterId PlanBuilder::PartAcross(NodeId node, Axis axis, int64_t begin, int64_t end, int32_t rank) {
  const Distribution& home = placements_[static_cast<size_t>(node)].result;
  std::vector<RegisterId> parts;
  for (int32_t from = 0; from < ranks_; ++from) {
    if (home.split.Begin(from) == home.split.End(from)) continue;
    const RegisterId part = Slice(node, Piece(node, home, from), axis, begin, end, from);
    parts.push_back(from == rank ? part : AddCopy(part, rank));
  }
  if (parts.empty()) return Slice(node, Piece(node, home, rank), axis, begin, end, rank);
  if (parts.size() == 1) return parts[0];
  ValueInfo info = graph_[node].info;
  LengthOf(info.shape, axis) = end - begin;
  return Join(node, std::move(parts), home.split.axis, info, rank);
}

RegisterId PlanBuilder::Slice(NodeId node, RegisterId source, Axis axis, int64_t begin, int64_t end,
                              int32_t rank) {
  ValueInfo info = plan_.registers[static_cast<size_t>(source)].info;
  int64_t& length = LengthOf(info.shape, axis);
  if (begin == 0 && end == length) return source;
  const size_t slice = AddTask(rank, StreamKind::kCompute, TaskKind::kCompute, node, Phase::kSlice, {source});
  plan_.tasks[slice].axis = axis;
  plan_.tasks[slice].total_rows = length;
  plan_.tasks[slice].row_begin = begin;
  plan_.tasks[slice].row_end = end;
  length = end - begin;
  return AddOutput(slice, info);
}

RegisterId PlanBuilder::Join(NodeId node, std::vector<RegisterId> parts, Axis axis, const ValueInfo& info,
                             int32_t rank) {
  const size_t join =
      AddTask(rank, StreamKind::kCompute, TaskKind::kCompute, node, Phase::kGather, std::move(parts));
  plan_.tasks[join].axis = axis;
  return AddOutput(join, info);
}

void PlanBuilder::EmitMoved(NodeId id) {
  const Node& node = graph_[id];
  const Placement& placement = placements_[static_cast<size_t>(id)];
  const Axis axis = placement.cuts.axis;
  // Of a range, all other inputs are its bounds.
  const size_t count = ops::HasRole(node, ops::Role::kRange) ? 1 : node.inputs.size();
  std::vector<RegisterId> made;
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    const int64_t begin = placement.cuts.Begin(rank), end = placement.cuts.End(rank);
    std::vector<RegisterId> parts;
    int64_t offset = -placement.first_moved;  // Of the input in the result.
    for (size_t i = 0; i < count; ++i) {
      Shape shape = graph_[node.inputs[i]].info.shape;
      const int64_t length = LengthOf(shape, axis);
      const int64_t first = std::clamp<int64_t>(begin - offset, 0, length);
      const int64_t last = std::clamp<int64_t>(end - offset, 0, length);
      if (first < last || (parts.empty() && i + 1 == count))
        parts.push_back(PartOf(node.inputs[i], axis, first, last, rank));
      offset += length;
    }
    made.push_back(Join(id, std::move(parts), axis, PartInfo(node.info, placement.cuts, rank), rank));
  }
  pieces_[{id, placement.result}] = std::move(made);
}

}  // namespace heddle::scheduler
