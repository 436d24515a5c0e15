// SPDX-License-Identifier: Apache-2.0
// What a BlockRunner keeps in memory and what it leaves to the panel store (docs/streaming.md).
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/block_pool.h"
#include "core/memory/counted_heap.h"
#include "core/memory/memory_budget.h"
#include "core/values/sizes.h"
#include "engine/blocks/block_runner.h"
#include "engine/session/planning.h"
#include "engine/session/state_taker.h"
#include "ops/base/split.h"
#include "ops/panels/entry_counts.h"
#include "ops/panels/panel_store.h"
#include "scheduler/schedule.h"

namespace heddle::engine {

int64_t BlockRunner::BytesBeside(const Graph& graph, const VariableTable& frame) const {
  return engine::BytesBeside(graph, frame, frames_, options_.ranks,
                             scheduler::LeastPanelledBytes(MemoryOf(options_)));
}

Status BlockRunner::BringToHost(Variable* variable) {
  return WithinMemory("variables", [&] { return engine::BringToHost(variable); });
}

// Copies go first, then what is nowhere else; all ranks do the same, by sizes that all know.
Status BlockRunner::MakeRoomOnDevice(const Plan& plan, VariableTable* frame) {
  if (plan.device_room.bytes == INT64_MAX) return OkStatus();
  const bool is_host = plan.device_room.is_host;
  std::set<std::string> read;
  // Plans in panels read variables in the memory of the host, whatever is there of them.
  for (const Binding& binding : plan.live_in)
    if (!binding.device.IsHost()) read.insert(binding.variable);
  std::vector<Variable*> others;
  int64_t bytes = 0;
  const auto add = [&](VariableTable& table, bool may_be_read) {
    for (auto& [name, variable] : table.variables()) {
      if (!variable.residence.on_device || (may_be_read && read.contains(name))) continue;
      if (is_host && !variable.residence.on_host) continue;  // It would take as much elsewhere.
      others.push_back(&variable);
      bytes = SaturatingSum(bytes, KnownBytes(variable.info));
    }
  };
  add(*frame, true);
  for (size_t i = 0; frames_ != nullptr && i < frames_->size(); ++i)
    if ((*frames_)[i].get() != frame) add(*(*frames_)[i], false);
  if (others.empty()) return OkStatus();
  int64_t room = plan.device_room.bytes;
  // The plan has more of the memory of the host, and other variables are there.
  if (plan.device_room.of_host != INT64_MAX)
    room = std::min(room, plan.device_room.of_host - BytesBeside(plan.graph, *frame));
  for (const bool is_copy : {true, false})
    for (Variable* const variable : others) {
      if (bytes <= room) return OkStatus();
      if (variable->residence.on_host != is_copy) continue;
      HEDDLE_RETURN_IF_ERROR(BringToHost(variable));
      bytes -= KnownBytes(variable->info);
    }
  return OkStatus();
}

Status BlockRunner::BringToHost(VariableTable* frame) {
  for (auto& [name, variable] : frame->variables()) HEDDLE_RETURN_IF_ERROR(BringToHost(&variable));
  return OkStatus();
}

Status BlockRunner::PutTogether(Variable* variable) {
  if (variable == nullptr) return OkStatus();
  HEDDLE_RETURN_IF_ERROR(BringToHost(variable));
  if (!variable->value.IsPanels()) return OkStatus();
  const std::shared_ptr<const RowPanels> panels = variable->value.panels();
  // Panels that fit beside the whole value need not go to a file before they are copied.
  const int64_t bytes = MemoryOf(options_) > 0 && options_.panel_bytes == 0
                            ? ops::BytesOfRows(*panels, variable->info)
                            : kUnknown;
  if (context_.panels != nullptr)
    HEDDLE_RETURN_IF_ERROR(bytes == kUnknown ? SetRoom(0) : MakeRoomBeside({.values = bytes}, /*in_use=*/0));
  return WithinMemory("variables", [&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(variable->value, panels->Rows(0, panels->shape().rows));
    variable->is_panels = options_.ranks > 1;  // Elsewhere it may be panels still.
    return OkStatus();
  });
}

Status BlockRunner::PutTogether(VariableTable* frame) {
  for (auto& [name, variable] : frame->variables()) HEDDLE_RETURN_IF_ERROR(PutTogether(&variable));
  return OkStatus();
}

Status BlockRunner::PutTogether(const Block& step, VariableTable* frame) {
  const auto together = [&](const std::string& name) {
    return PutTogether(frame->FindMutable(name)).At(step.position);
  };
  if (step.kind == Block::Kind::kList)
    for (const auto& [parameter, name] : step.arguments) HEDDLE_RETURN_IF_ERROR(together(name));
  if (step.kind != Block::Kind::kParallelFor) return OkStatus();
  for (const auto* names : {&step.merged, &step.sums})
    for (const std::string& name : *names) HEDDLE_RETURN_IF_ERROR(together(name));
  return OkStatus();
}

Status BlockRunner::MakeRoom(const scheduler::MemoryOfPlan& needed, int64_t in_use) {
  const bool has_limit = options_.panel_bytes > 0 || MemoryOf(options_) > 0;
  return has_limit ? MakeRoomBeside(needed, in_use) : OkStatus();
}

Status BlockRunner::MakeRoomBeside(const scheduler::MemoryOfPlan& needed, int64_t in_use) {
  const int64_t bytes = SaturatingSum(needed.values, needed.in_transit);
  const int64_t kept = context_.panels->Statistics().kept_bytes;
  const auto others = [&] {
    const int64_t reusable = BlockPool::Process().Statistics().trimmable_bytes;
    return std::max<int64_t>(0, MemoryBudget::Process().used() - kept - reusable);
  };
  // A checkpoint that is being written holds values of before. In a parfor, whose lanes have other threads,
  // none is.
  const int64_t memory = MemoryOf(options_);
  const bool is_short = memory > 0 && SaturatingSum(bytes, others()) - in_use > memory;
  if (is_short && environment_.states != nullptr && lane_ == 0) environment_.states->WaitForWrite();
  // What the plan reads is in use, and among the values of the plan.
  return SetRoom(RoomOfPanels(options_, bytes, needed.working, std::max<int64_t>(0, others() - in_use)));
}

Status BlockRunner::SetRoom(int64_t bytes) {
  room_ = bytes;
  return context_.panels->SetRoom(bytes);
}

const scheduler::MemoryOfPlan& BlockRunner::PlannedMemoryOf(const Plan& plan) {
  constexpr size_t kMostPlans = 4096;  // Of a loop whose sizes change from round to round.
  if (planned_memory_.size() >= kMostPlans) planned_memory_.clear();
  const auto [found, is_new] = planned_memory_.try_emplace(plan.key);
  if (is_new || plan.key == 0) found->second = scheduler::MemoryOn(plan, options_.rank, options_.threads);
  return found->second;
}

void BlockRunner::NotePlannedMemory(int64_t planned_bytes, int64_t panel_bytes, int64_t read_bytes) {
  const int64_t kept_now = context_.panels->Statistics().kept_bytes;
  // Panels that are kept may come to take all the room that the plan leaves them.
  const int64_t kept = std::min(room_, SaturatingSum(kept_now, panel_bytes));
  const int64_t in_use = BlockPool::Process().Statistics().in_use_bytes;
  const int64_t others = std::max<int64_t>(0, in_use - kept_now - read_bytes);
  statistics_.planned_bytes =
      std::max(statistics_.planned_bytes, SaturatingSum(SaturatingSum(others, planned_bytes), kept));
}

// What has become small, as what a filter has left, is in memory from now on.
Status BlockRunner::KeepWhereSmall(Variable* variable) {
  variable->is_panels = variable->value.IsPanels();
  if (!variable->is_panels || options_.panel_bytes > 0) return OkStatus();
  const auto panels = variable->value.panels();
  const double bytes = ops::BytesToMove(ValueInfo::OfMatrix(panels->shape()));
  if (bytes > static_cast<double>(scheduler::LeastPanelledBytes(MemoryOf(options_)))) return OkStatus();
  HEDDLE_ASSIGN_OR_RETURN(variable->value, panels->Rows(0, panels->shape().rows));
  variable->is_panels = false;
  return OkStatus();
}

}  // namespace heddle::engine
