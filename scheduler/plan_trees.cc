// SPDX-License-Identifier: Apache-2.0
// Values of many ranks to one, and of one to many.
#include <utility>

#include "core/values/panels.h"
#include "scheduler/plan_builder.h"

namespace heddle::scheduler {

RegisterId PlanBuilder::GatherTree(NodeId node, const std::vector<RegisterId>& pieces, int32_t first,
                                   int32_t last, const ValueInfo& info, Axis axis) {
  if (last - first == 1) return pieces[static_cast<size_t>(first)];
  const auto half = static_cast<int32_t>(FloorPowerOfTwo(last - first - 1));
  std::vector<RegisterId> parts = {GatherTree(node, pieces, first, first + half, info, axis)};
  parts.push_back(AddCopy(GatherTree(node, pieces, first + half, last, info, axis), first));
  ValueInfo joined = plan_.registers[static_cast<size_t>(parts[0])].info;
  const Shape more = plan_.registers[static_cast<size_t>(parts[1])].info.shape;
  const auto add = [](int64_t a, int64_t b) { return a == kUnknown || b == kUnknown ? kUnknown : a + b; };
  switch (axis) {
    case Axis::kRows: joined.shape.rows = add(joined.shape.rows, more.rows); break;
    case Axis::kColumns: joined.shape.columns = add(joined.shape.columns, more.columns); break;
  }
  return Join(node, std::move(parts), axis, last - first == ranks_ ? info : joined, first);
}

std::vector<RegisterId> PlanBuilder::GatherToAll(NodeId node, const std::vector<RegisterId>& pieces,
                                                 const ValueInfo& info) {
  std::vector<RegisterId> gathered(static_cast<size_t>(ranks_), kNoRegister);
  if (ranks_ <= kMostDirectRanks) {
    for (int32_t rank = 0; rank < ranks_; ++rank)
      gathered[static_cast<size_t>(rank)] = AddGather(node, pieces, rank, info);
    return gathered;
  }
  gathered[0] = GatherTree(node, pieces, 0, ranks_, info);
  for (int32_t rank = 1; rank < ranks_; ++rank) Broadcast(&gathered, 0, rank);
  return gathered;
}

RegisterId PlanBuilder::Broadcast(std::vector<RegisterId>* copies, int32_t from, int32_t rank) {
  if ((*copies)[static_cast<size_t>(rank)] != kNoRegister) return (*copies)[static_cast<size_t>(rank)];
  // Counted from the rank that has the value: each pulls from the one whose number has its lowest bit less.
  const int32_t number = (rank - from + ranks_) % ranks_;
  const int32_t before = ranks_ <= kMostDirectRanks ? 0 : number & (number - 1);
  const RegisterId copy = AddCopy(Broadcast(copies, from, (before + from) % ranks_), rank);
  (*copies)[static_cast<size_t>(rank)] = copy;
  return copy;
}

}  // namespace heddle::scheduler
