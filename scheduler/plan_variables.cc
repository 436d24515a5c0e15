// SPDX-License-Identifier: Apache-2.0
// The variables that a plan finds and leaves, in which memory they are, and the sizes that it tells of them.
#include <algorithm>
#include <vector>

#include "scheduler/plan_builder.h"

namespace heddle::scheduler {

Residence PlanBuilder::ResidenceOf(const std::string& variable) const {
  if (!KeepsValuesOnDevice()) return {};
  const auto found = on_device_->residences.find(variable);
  return found == on_device_->residences.end() ? Residence() : found->second;
}

void PlanBuilder::EmitVariable(NodeId id) {
  const Distribution& home = placements_[static_cast<size_t>(id)].result;
  const Residence residence = ResidenceOf(graph_[id].Text("name"));
  std::vector<RegisterId> pieces, there;
  if (residence.on_host) pieces = AddLiveIn(id, {});
  if (residence.on_device) there = AddLiveIn(id, on_device_->device);
  for (size_t rank = 0; residence.on_host && residence.on_device && rank < pieces.size(); ++rank)
    if (pieces[rank] != kNoRegister) transfers_[pieces[rank]] = there[rank];
  pieces_[{id, home}] = residence.on_host ? pieces : there;
}

std::vector<RegisterId> PlanBuilder::AddLiveIn(NodeId id, Device device) {
  const Node& node = graph_[id];
  const Distribution& home = placements_[static_cast<size_t>(id)].result;
  plan_.live_in.push_back({node.Text("name"), home, node.info, id, device});
  std::vector<RegisterId> pieces(static_cast<size_t>(ranks_), kNoRegister);
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    if (!home.IsHeldBy(rank)) continue;
    const ValueInfo info = home.IsSplit() ? PartInfo(node.info, home.split, rank) : node.info;
    pieces[static_cast<size_t>(rank)] =
        AddOutput(AddTask(rank, StreamKind::kCompute, TaskKind::kSource, id, Phase::kWhole, {}), info);
    plan_.registers.back().device = device;
  }
  return pieces;
}

void PlanBuilder::EmitAssign(NodeId id) {
  const Node& node = graph_[id];
  const Distribution& home = placements_[static_cast<size_t>(id)].result;
  std::vector<RegisterId> values(static_cast<size_t>(ranks_), kNoRegister);
  bool is_there = KeepsValuesOnDevice() && node.info.IsSized();
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    if (!home.IsHeldBy(rank)) continue;
    RegisterId& value = values[static_cast<size_t>(rank)];
    value = PieceAnywhere(node.inputs[0], home, rank);
    is_there = is_there && plan_.registers[static_cast<size_t>(value)].device == on_device_->device;
  }
  for (RegisterId& value : values)
    if (!is_there && value != kNoRegister) value = InMemoryOf(value, {});
  AddLiveOut(id, values, is_there ? on_device_->device : Device());
  if (node.info.IsTabular() && !node.info.IsSized()) EmitShape(id, home);
}

void PlanBuilder::AddLiveOut(NodeId id, const std::vector<RegisterId>& values, Device device) {
  const Node& node = graph_[id];
  const Distribution& home = placements_[static_cast<size_t>(id)].result;
  plan_.live_out.push_back({node.Text("name"), home, node.info, id, device});
  for (int32_t rank = 0; rank < ranks_; ++rank)
    if (const RegisterId value = values[static_cast<size_t>(rank)]; value != kNoRegister)
      AddTask(rank, StreamKind::kCompute, TaskKind::kSink, id, Phase::kWhole, {value});
}

void PlanBuilder::KeepCopiesOfLiveIns() {
  if (!KeepsValuesOnDevice()) return;
  const std::vector<Binding> read = plan_.live_in, left = plan_.live_out;
  for (const Binding& binding : read) {
    const Residence residence = ResidenceOf(binding.variable);
    const bool is_replaced = std::any_of(left.begin(), left.end(), [&](const Binding& other) {
      return other.variable == binding.variable;
    });
    if (is_replaced || (residence.on_host && residence.on_device)) continue;
    std::vector<RegisterId> copies = pieces_.at({binding.node, binding.distribution});
    bool is_copied = true;
    for (RegisterId& id : copies) {
      if (id == kNoRegister) continue;
      const auto found = transfers_.find(id);
      is_copied = is_copied && found != transfers_.end();
      if (is_copied) id = found->second;
    }
    if (is_copied) AddLiveOut(binding.node, copies, residence.on_host ? on_device_->device : Device());
  }
}

void PlanBuilder::EmitShape(NodeId id, const Distribution& home) {
  const Node& node = graph_[id];
  const bool has_columns = node.info.IsFrame() && node.info.schema == nullptr;
  const ValueInfo info = has_columns ? ValueInfo::OfFrame(1, nullptr) : ValueInfo::OfMatrix({1, 3});
  std::vector<RegisterId> shapes;  // Of the parts, or of the whole.
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    if (!home.IsHeldBy(rank) || (!home.IsSplit() && !shapes.empty())) continue;
    shapes.push_back(AddOutput(AddTask(rank, StreamKind::kCompute, TaskKind::kCompute, id, Phase::kShape,
                                       {Piece(node.inputs[0], home, rank)}),
                               info));
  }
  std::vector<RegisterId> there(static_cast<size_t>(ranks_), kNoRegister);
  const auto from = static_cast<int32_t>(RankOf(shapes[0]));
  if (home.IsSplit())
    there = GatherToAll(id, shapes,
                        has_columns ? ValueInfo::OfFrame(ranks_, nullptr) : ValueInfo::OfMatrix({ranks_, 3}));
  else
    there[static_cast<size_t>(from)] = shapes[0];
  for (int32_t rank = 0; rank < ranks_; ++rank)
    AddTask(rank, StreamKind::kCompute, TaskKind::kSink, id, Phase::kShape, {Broadcast(&there, from, rank)});
}

}  // namespace heddle::scheduler
