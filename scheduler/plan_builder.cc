// SPDX-License-Identifier: Apache-2.0
#include "scheduler/plan_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/programs/input_infos.h"
#include "ops/base/operator.h"
#include "ops/device/run/run_on_device.h"
#include "scheduler/plan_collectives.h"

namespace heddle::scheduler {
PlanBuilder::PlanBuilder(const Graph& graph, const std::vector<Placement>& placements, int32_t ranks,
                         std::optional<OnDevice> on_device)
    : graph_(graph), placements_(placements), ranks_(ranks), on_device_(std::move(on_device)) {
  if (on_device_) {
    const Device device = on_device_->device;
    for (const StreamKind kind : {StreamKind::kCompute, StreamKind::kCopyIn, StreamKind::kCopyOut})
      plan_.streams.push_back({device, kind,
                               fmt::format("{}:{} {}", heddle::Name(device.type), device.index,
                                           heddle::Name(kind))});
  }
  tasks_of_.resize(static_cast<size_t>(ranks) * plan_.streams.size());
}

Plan PlanBuilder::Build() {
  plan_.ranks = ranks_;
  plan_.graph = graph_;
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_[id];
    const Placement& placement = placements_[static_cast<size_t>(id)];
    if (node.Is("literal")) continue;  // made on the ranks that need it
    if (node.Is("variable")) {
      EmitVariable(id);
    } else if (node.Is("assign")) {
      EmitAssign(id);
    } else if (node.Is("result")) {
      EmitResult(id);
    } else if (placement.result.IsEach() && !placement.split && !node.info.IsTuple()) {
      // What every rank computes for itself is made where it is needed; here only to keep failures in script
      // order.
      if (const ops::Operator* op = ops::FindOperator(node.op); op->may_fail)
        Piece(id, Distribution::Each(), 0);
    } else if (placement.staged != nullptr && placement.staged->units == nullptr) {
      EmitStages(id);
    } else if (placement.moves_rows) {
      EmitMoved(id);
    } else {
      EmitOperator(id);
    }
  }
  KeepCopiesOfLiveIns();
  std::stable_sort(plan_.tasks.begin(), plan_.tasks.end(),
                   [](const Task& a, const Task& b) { return a.id.rank() < b.id.rank(); });
  return std::move(plan_);
}

ValueInfo PlanBuilder::PartInfo(const ValueInfo& whole, const Split& split, int32_t rank) {
  ValueInfo info = whole;
  const int64_t length = split.End(rank) - split.Begin(rank);
  switch (split.axis) {
    case Axis::kRows: info.shape.rows = length; break;
    case Axis::kColumns: info.shape.columns = length; break;
  }
  return info;
}

uint32_t PlanBuilder::StreamOf(StreamKind kind, Device device) const {
  for (size_t i = 0; i < plan_.streams.size(); ++i)
    if (plan_.streams[i].kind == kind && plan_.streams[i].device == device) return static_cast<uint32_t>(i);
  HEDDLE_CHECK(false, "a rank has a stream of every kind");
}

size_t PlanBuilder::AddTask(int32_t rank, StreamKind kind_of_stream, TaskKind kind, NodeId node, Phase phase,
                            std::vector<RegisterId> consumed, Device device) {
  Task task;
  const uint32_t stream = StreamOf(kind_of_stream, device);
  std::vector<size_t>& of_stream = tasks_of_[static_cast<size_t>(rank) * plan_.streams.size() + stream];
  task.id = TaskId::Make(static_cast<uint32_t>(rank), plan_.streams[stream].device, stream,
                         static_cast<uint32_t>(of_stream.size()));
  task.kind = kind;
  task.node = node;
  task.phase = phase;
  for (RegisterId id : consumed) {
    if (id == kNoRegister) continue;
    auto& consumers = plan_.registers[static_cast<size_t>(id)].consumers;
    // The same register twice in one operator (X * X) is one edge.
    if (std::find(consumers.begin(), consumers.end(), task.id) == consumers.end())
      consumers.push_back(task.id);
  }
  task.consumed = std::move(consumed);
  of_stream.push_back(plan_.tasks.size());
  plan_.tasks.push_back(std::move(task));
  return plan_.tasks.size() - 1;
}

RegisterId PlanBuilder::AddOutput(size_t task, const ValueInfo& info) {
  Register output;
  output.id = static_cast<RegisterId>(plan_.registers.size());
  output.producer = plan_.tasks[task].id;
  output.info = info;
  output.bytes = KnownBytes(info);
  plan_.tasks[task].produced.push_back(output.id);
  plan_.registers.push_back(std::move(output));
  return plan_.registers.back().id;
}

uint32_t PlanBuilder::RankOf(RegisterId id) const {
  return plan_.registers[static_cast<size_t>(id)].producer.rank();
}

RegisterId PlanBuilder::AddCopy(RegisterId remote, int32_t rank) {
  const ValueInfo info = plan_.registers[static_cast<size_t>(remote)].info;
  const TaskId producer = plan_.registers[static_cast<size_t>(remote)].producer;
  const NodeId node = plan_.tasks[TaskOf(producer)].node;
  return AddOutput(AddTask(rank, StreamKind::kNetwork, TaskKind::kCopy, node, Phase::kWhole, {remote}), info);
}

RegisterId PlanBuilder::AddGather(NodeId node, std::vector<RegisterId> pieces, int32_t rank,
                                  const ValueInfo& info, Axis axis) {
  if (ranks_ > kMostDirectRanks && rank == 0 && !info.IsFrame() && KnownBytes(info) <= kMostTreeBytes)
    return GatherTree(node, pieces, 0, ranks_, info, axis);
  for (int32_t r = 0; r < ranks_; ++r)
    if (r != rank) pieces[static_cast<size_t>(r)] = AddCopy(pieces[static_cast<size_t>(r)], rank);
  return Join(node, std::move(pieces), axis, info, rank);
}

void PlanBuilder::BringOrder(NodeId node, int32_t rank) {
  if (rank == 0) return;
  for (const NodeId before : NodesBefore(node, 0)) {
    if (last_task_.contains({before, rank})) continue;
    const size_t copy = AddTask(rank, StreamKind::kNetwork, TaskKind::kCopy, before, Phase::kReady, {});
    AddOrder(last_task_.at({before, 0}), copy);
    last_task_[{before, rank}] = copy;
  }
}

void PlanBuilder::AddControl(size_t task) {
  const int32_t rank = static_cast<int32_t>(plan_.tasks[task].id.rank());
  const NodeId node = plan_.tasks[task].node;
  for (const NodeId before : NodesBefore(node, rank)) AddOrder(last_task_.at({before, rank}), task);
  last_task_[{node, rank}] = task;
  if (!ops::FindOperator(graph_[node].op)->updates) return;
  // Another rank's copy or a variable that keeps the value would make it wait for nothing.
  const Register& updated = plan_.registers[static_cast<size_t>(plan_.tasks[task].consumed[0])];
  if (OutlivesPlan(updated)) return;
  const std::vector<TaskId> readers = updated.consumers;
  const auto keeps = [&](TaskId reader) {
    return reader.rank() != plan_.tasks[task].id.rank() ||
           plan_.tasks[TaskOf(reader)].kind == TaskKind::kSink;
  };
  if (std::any_of(readers.begin(), readers.end(), keeps)) return;
  for (TaskId reader : readers)
    if (reader != plan_.tasks[task].id) AddOrder(TaskOf(reader), task);
}

bool PlanBuilder::OutlivesPlan(const Register& reg) const {
  const Task& source = plan_.tasks[TaskOf(reg.producer)];
  if (source.kind != TaskKind::kSource || !graph_[source.node].Is("variable")) return false;
  const std::string& name = graph_[source.node].Text("name");
  return std::none_of(graph_.nodes.begin(), graph_.nodes.end(),
                      [&](const Node& node) { return node.Is("assign") && node.Text("name") == name; });
}

std::vector<size_t> PlanBuilder::OtherRanksReady(NodeId node) {
  std::vector<size_t> here;
  for (int32_t rank = 1; rank < ranks_; ++rank) {
    const size_t ready = AddTask(rank, StreamKind::kHost, TaskKind::kSource, node, Phase::kReady, {});
    for (const NodeId before : NodesBefore(node, rank)) AddOrder(last_task_.at({before, rank}), ready);
    const size_t copy = AddTask(0, StreamKind::kNetwork, TaskKind::kCopy, node, Phase::kReady, {});
    AddOrder(ready, copy);
    here.push_back(copy);
  }
  return here;
}

std::vector<NodeId> PlanBuilder::NodesBefore(NodeId node, int32_t rank) const {
  std::vector<NodeId> nodes;
  std::vector<NodeId> open = graph_[node].after;
  std::set<NodeId> seen;
  while (!open.empty()) {
    const NodeId before = open.back();
    open.pop_back();
    if (!seen.insert(before).second) continue;
    if (last_task_.contains({before, rank}))
      nodes.push_back(before);
    else
      open.insert(open.end(), graph_[before].after.begin(), graph_[before].after.end());
  }
  return nodes;
}

void PlanBuilder::AddOrder(size_t earlier, size_t later) {
  auto [entry, is_new] = control_of_.try_emplace(earlier, kNoRegister);
  if (is_new) {
    entry->second = AddOutput(earlier, ValueInfo{});
    plan_.registers.back().control = true;
  }
  std::vector<TaskId>& consumers = plan_.registers[static_cast<size_t>(entry->second)].consumers;
  const TaskId id = plan_.tasks[later].id;
  if (std::find(consumers.begin(), consumers.end(), id) != consumers.end()) return;
  consumers.push_back(id);
  plan_.tasks[later].control_in.push_back(entry->second);
}

RegisterId PlanBuilder::Piece(NodeId node, const Distribution& distribution, int32_t rank) {
  return InMemoryOf(PieceAnywhere(node, distribution, rank), {});
}

RegisterId PlanBuilder::InMemoryOf(RegisterId source, Device device) {
  const Register& from = plan_.registers[static_cast<size_t>(source)];
  if (from.device == device) return source;
  if (const auto found = transfers_.find(source); found != transfers_.end()) return found->second;
  const ValueInfo info = from.info;
  const NodeId node = plan_.tasks[TaskOf(from.producer)].node;
  const bool is_in = from.device.IsHost();
  const size_t task =
      AddTask(static_cast<int32_t>(from.producer.rank()), is_in ? StreamKind::kCopyIn : StreamKind::kCopyOut,
              TaskKind::kCompute, node, Phase::kTransfer, {source}, is_in ? device : from.device);
  const RegisterId copy = AddOutput(task, info);
  plan_.registers[static_cast<size_t>(copy)].device = device;
  return transfers_[source] = copy;
}

RegisterId PlanBuilder::PieceAnywhere(NodeId node, const Distribution& distribution, int32_t rank) {
  auto& pieces = pieces_[{node, distribution}];
  if (pieces.empty()) pieces.assign(static_cast<size_t>(ranks_), kNoRegister);
  if (pieces[static_cast<size_t>(rank)] == kNoRegister) {
    const RegisterId made = MakePiece(node, distribution, rank);
    pieces_[{node, distribution}][static_cast<size_t>(rank)] = made;
    return made;
  }
  return pieces[static_cast<size_t>(rank)];
}

RegisterId PlanBuilder::MakePiece(NodeId node, const Distribution& target, int32_t rank) {
  const Distribution& home = placements_[static_cast<size_t>(node)].result;
  switch (target.kind) {
    case Distribution::Kind::kOne:
      HEDDLE_CHECK(rank == target.rank, "a value on one rank is on no other");
      if (home.IsEach()) return Piece(node, home, rank);
      if (home.IsOne()) return AddCopy(Piece(node, home, home.rank), rank);
      return GatherParts(node, home, rank);
    case Distribution::Kind::kEach:
      if (home.IsEach()) return ComputeEverywhere(node, rank);
      if (home.IsOne()) return CopyOf(node, home, rank);
      if (ranks_ > kMostExchanged && KnownBytes(graph_[node].info) > kMostTreeBytes &&
          !home.split.cuts.empty() && home.split.axis == Axis::kRows) {
        const std::vector<RegisterId> gathered = GatherByDoubling(node, home, 0, ranks_);
        pieces_[{node, target}] = gathered;
        return gathered[static_cast<size_t>(rank)];
      }
      if (ranks_ <= kMostDirectRanks || KnownBytes(graph_[node].info) > kMostTreeBytes)
        return GatherParts(node, home, rank);
      return CopyOf(node, Distribution::One(), rank);
    case Distribution::Kind::kSplit:
      return PartOf(node, target.split.axis, target.split.Begin(rank), target.split.End(rank), rank);
    case Distribution::Kind::kPartial: break;
  }
  HEDDLE_CHECK(false, "partial values are finished, not boxed");
}

RegisterId PlanBuilder::CopyOf(NodeId node, const Distribution& one, int32_t rank) {
  std::vector<RegisterId>& copies = copies_[node];
  if (copies.empty()) copies.assign(static_cast<size_t>(ranks_), kNoRegister);
  if (copies[static_cast<size_t>(one.rank)] == kNoRegister) {
    const RegisterId whole = Piece(node, one, one.rank);
    copies_[node][static_cast<size_t>(one.rank)] = whole;
  }
  const ValueInfo& info = graph_[node].info;
  const int32_t chunks = ChunksOf(BytesToMove(info), ranks_);
  if (chunks > 1 && rank != one.rank && info.IsSized() && info.shape.rows >= chunks)
    return ChunkedCopy(node, one.rank, chunks, rank);
  return Broadcast(&copies_[node], one.rank, rank);
}

RegisterId PlanBuilder::GatherParts(NodeId node, const Distribution& split, int32_t rank) {
  std::vector<RegisterId> parts;
  for (int32_t r = 0; r < ranks_; ++r) parts.push_back(Piece(node, split, r));
  return AddGather(node, std::move(parts), rank, graph_[node].info, split.split.axis);
}

RegisterId PlanBuilder::ComputeEverywhere(NodeId id, int32_t rank) {
  const Node& node = graph_[id];
  if (node.Is("literal"))
    return AddOutput(AddTask(rank, StreamKind::kCompute, TaskKind::kSource, id, Phase::kWhole, {}),
                     node.info);
  BringOrder(id, rank);
  const size_t task = EmitTask(id, rank, false);
  const RegisterId output = AddOutput(task, node.info);
  PlaceOutput(output, id, 0);
  AddControl(task);
  return InMemoryOf(output, {});
}

void PlanBuilder::EmitOperator(NodeId id) {
  const Node& node = graph_[id];
  const Placement& placement = placements_[static_cast<size_t>(id)];
  const bool has_effect = ops::FindOperator(node.op)->effect;
  std::vector<size_t> reduced = ReducedResults(id);
  const std::vector<size_t> others =
      ops::HasRole(node, ops::Role::kWrite) ? OtherRanksReady(id) : std::vector<size_t>();
  // The results of kReduce are finished from one list together.
  const bool together = placement.rule == ops::RowRule::kReduce && !reduced.empty();
  std::vector<std::vector<RegisterId>> partials(together ? 1 : reduced.size());
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    if (!placement.split && !placement.result.IsHeldBy(rank)) continue;
    BringOrder(id, rank);
    const size_t task = EmitTask(id, rank, has_effect && !placement.split);
    if (together) {
      partials[0].push_back(AddOutput(task, ValueInfo::OfMatrix({kUnknown, kUnknown})));
    } else if (!has_effect) {
      for (size_t i = 0, list = 0; i < ResultsOf(node).size(); ++i) {
        if (std::find(reduced.begin(), reduced.end(), i) == reduced.end())
          AddOutputOf(task, id, i, placement.split);
        else
          partials[list++].push_back(AddOutput(task, ValueInfo::OfMatrix({kUnknown, kUnknown})));
      }
    }
    AddControl(task);
    if (!placement.split)
      for (const size_t ready : others) AddOrder(ready, task);
  }
  if (placement.staged != nullptr) EmitParts(id, &partials, &reduced);
  if (!reduced.empty()) EmitFinish(id, partials, reduced);
  if (has_effect) {
    // Until "finish" nobody sees any of it.
    if (placement.split)
      for (const size_t ready : others) AddOrder(ready, last_task_.at({id, 0}));
    return;
  }
  if (!node.info.IsTuple()) pieces_[{id, placement.result}] = std::move(outputs_[id][0]);
}

std::vector<size_t> PlanBuilder::ReducedResults(NodeId id) const {
  const Node& node = graph_[id];
  const Placement& placement = placements_[static_cast<size_t>(id)];
  std::vector<size_t> reduced;
  if (!placement.split) return reduced;
  for (size_t i = 0; i < ResultsOf(node).size(); ++i)
    if (placement.rule == ops::RowRule::kReduce ||
        (placement.rule == ops::RowRule::kMixed && ops::FindOperator(node.op)->reduces(node, i)))
      reduced.push_back(i);
  return reduced;
}

void PlanBuilder::AddOutputOf(size_t task, NodeId id, size_t i, bool split) {
  const std::span<const ValueInfo> results = ResultsOf(graph_[id]);
  const auto rank = static_cast<int32_t>(plan_.tasks[task].id.rank());
  std::vector<std::vector<RegisterId>>& outputs = outputs_[id];
  outputs.resize(results.size(), std::vector<RegisterId>(static_cast<size_t>(ranks_), kNoRegister));
  outputs[i][static_cast<size_t>(rank)] = AddOutput(
      task, split ? PartInfo(results[i], placements_[static_cast<size_t>(id)].cuts, rank) : results[i]);
  PlaceOutput(outputs[i][static_cast<size_t>(rank)], id, i);
}

void PlanBuilder::PlaceOutput(RegisterId id, NodeId node, size_t i) {
  Register& output = plan_.registers[static_cast<size_t>(id)];
  if (output.producer.device().IsHost() || !on_device_->keeps_values) return;
  // Reductions are finished by the host.
  if (output.info.IsMatrix() && ops::StaysOnDevice(graph_[node], InputInfos(graph_, graph_[node]), i))
    output.device = output.producer.device();
}

void PlanBuilder::EmitResult(NodeId id) {
  const Node& node = graph_[id];
  pieces_[{id, placements_[static_cast<size_t>(id)].result}] =
      outputs_.at(node.inputs[0])[node.ResultIndex()];
}

size_t PlanBuilder::EmitTask(NodeId id, int32_t rank, bool has_effect) {
  const Node& node = graph_[id];
  const Placement& placement = placements_[static_cast<size_t>(id)];
  const bool on_device = !has_effect && RunsOnDevice(id);
  std::vector<RegisterId> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoNode) {
      inputs.push_back(kNoRegister);
    } else if (on_device && on_device_->keeps_values && graph_[node.inputs[i]].info.IsMatrix()) {
      const RegisterId piece = PieceAnywhere(node.inputs[i], placement.inputs[i], rank);
      inputs.push_back(InMemoryOf(piece, on_device_->device));
    } else {
      inputs.push_back(Piece(node.inputs[i], placement.inputs[i], rank));
    }
  }
  TaskKind kind = TaskKind::kCompute;
  if (has_effect) kind = TaskKind::kSink;
  if (node.inputs.empty()) kind = TaskKind::kSource;
  const bool reduces = placement.rule == ops::RowRule::kReduce || placement.rule == ops::RowRule::kMixed;
  const bool partial = placement.split && reduces;
  const size_t index =
      AddTask(rank, has_effect ? StreamKind::kHost : StreamKind::kCompute, kind, id,
              partial ? Phase::kPartial : Phase::kWhole, std::move(inputs),
              on_device ? on_device_->device : Device());
  Task& task = plan_.tasks[index];
  if (placement.split) {
    task.total_rows = placement.total_rows;
    task.row_begin = placement.cuts.Begin(rank);
    task.row_end = placement.cuts.End(rank);
    return index;
  }
  // Whole: the rows of the dimension a row rule would cut.
  const ValueInfo& result = ResultsOf(node)[0];
  int64_t rows = result.IsTabular() ? result.shape.rows : 0;
  if (reduces && !node.inputs.empty() && graph_[node.inputs[0]].info.IsTabular())
    rows = graph_[node.inputs[0]].info.shape.rows;
  task.total_rows = task.row_end = std::max<int64_t>(rows, 0);
  return index;
}

void PlanBuilder::EmitFinish(NodeId id, const std::vector<std::vector<RegisterId>>& partials,
                             const std::vector<size_t>& results) {
  const Placement& placement = placements_[static_cast<size_t>(id)];
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    if (!placement.reduced.IsHeldBy(rank)) continue;
    std::vector<RegisterId> nodes;
    for (const std::vector<RegisterId>& list : partials)
      nodes.push_back(list.empty() ? kNoRegister  // Finished in parts.
                                   : AddGather(id, list, rank, ValueInfo::OfMatrix({kUnknown, kUnknown})));
    const Node& node = graph_[id];
    const bool has_effect = ops::FindOperator(node.op)->effect;
    // What an effect does is also told by its scalars.
    for (size_t i = 0; has_effect && i < node.inputs.size(); ++i)
      if (!placement.inputs[i].IsSplit())
        nodes.push_back(node.inputs[i] == kNoNode ? kNoRegister
                                                  : Piece(node.inputs[i], placement.inputs[i], rank));
    const size_t finish =
        AddTask(rank, has_effect ? StreamKind::kHost : StreamKind::kCompute,
                has_effect ? TaskKind::kSink : TaskKind::kCompute, id, Phase::kFinish, std::move(nodes));
    plan_.tasks[finish].total_rows = plan_.tasks[finish].row_end = placement.total_rows;
    for (const size_t i : results)
      if (!has_effect) AddOutputOf(finish, id, i, false);
    last_task_[{id, rank}] = finish;
  }
}

}  // namespace heddle::scheduler
