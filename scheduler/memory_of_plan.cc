// SPDX-License-Identifier: Apache-2.0
#include "scheduler/memory_of_plan.h"

#include <algorithm>
#include <limits>

#include "core/programs/input_infos.h"
#include "core/programs/staged_tasks.h"
#include "core/values/sizes.h"
#include "ops/base/held_bytes.h"
#include "ops/base/operator.h"
#include "ops/base/stages.h"
#include "ops/panels/staged_run.h"
#include "scheduler/panel_lists.h"
#include "scheduler/passes/plan_passes.h"
#include "scheduler/plan_memory.h"
#include "scheduler/staged_panels.h"

namespace heddle::scheduler {
namespace {

bool HasDisk(const Plan& plan) {
  return std::any_of(plan.streams.begin(), plan.streams.end(),
                     [](const auto& stream) { return stream.kind == StreamKind::kDisk; });
}

const ops::StagedForm& FormOf(const Plan& plan, const StagedNode& staged) {
  return *ops::StagedFormAt(*ops::FindOperator(plan.graph[staged.node].op), staged.form);
}

// Whether a task that acts on panels makes a handle to what it makes as its `result`.
bool MakesHandle(const Plan& plan, const Task& task, size_t result) {
  const bool is_stage = IsStageInPanels(plan, task);
  if (task.node == kNoNode || (task.phase != Phase::kPanels && !is_stage)) return false;
  const StagedNode* const staged = FindStaged(plan, task.node);
  if (staged == nullptr) return true;
  const ops::StagedForm& form = FormOf(plan, *staged);
  if (is_stage && task.stage + 1 < static_cast<int32_t>(form.stages.size())) return false;
  return ops::IsCutByRows(form, result);
}

}  // namespace

std::vector<bool> HandlesOf(const Plan& plan) {
  std::vector<bool> handles(plan.registers.size());
  for (const Register& reg : plan.registers)
    handles[static_cast<size_t>(reg.id)] = !reg.control && reg.bytes == 0 && KnownBytes(reg.info) > 0;
  for (const Task& task : plan.tasks) {
    for (size_t result = 0; result < task.produced.size(); ++result) {
      const Register& reg = plan.registers[static_cast<size_t>(task.produced[result])];
      if (!reg.control && reg.bytes == 0 && MakesHandle(plan, task, result))
        handles[static_cast<size_t>(reg.id)] = true;
    }
  }
  return handles;
}

int64_t HeldOfPanels(const Plan& plan, const Task& task) {
  if (task.node == kNoNode || task.kind != TaskKind::kCompute) return 0;
  if (task.phase != Phase::kPanels && !IsStageInPanels(plan, task)) return 0;
  const StagedNode* const staged = FindStaged(plan, task.node);
  if (staged == nullptr) {
    return ops::HeldBytesOf(plan.graph[task.node], 0);
  }
  const Node& node = plan.graph[task.node];
  const std::vector<ValueInfo> infos = InputInfos(plan.graph, node);
  const auto panels = static_cast<int32_t>(staged->rows.cuts.size()) - 1;
  const ops::StagedForm& form = FormOf(plan, *staged);
  const ops::RankGrid grid = ops::GridOf(node, panels);
  return static_cast<int64_t>(task.phase == Phase::kStage
                                  ? HeldInStages(form, node, infos, grid, staged->rows, staged->result_rows)
                                  : HeldInStages(form, node, infos, grid));
}

std::vector<NodeId> AssignsOfPanels(const Plan& plan) {
  std::vector<NodeId> panels;
  if (!HasDisk(plan)) return panels;
  const std::vector<bool> handles = HandlesOf(plan);
  for (const Task& task : plan.tasks) {
    if (task.kind != TaskKind::kSink || task.phase != Phase::kWhole || !plan.graph[task.node].Is("assign"))
      continue;
    if (handles[static_cast<size_t>(task.consumed[0])]) panels.push_back(task.node);
  }
  return panels;
}

namespace {

// Rows of a handle that is collected in the plan, and is dense, go from wherever they are right into the
// panel that is read. What makes rows when they are read, or puts columns of texts together, has two at a
// time.
bool ReadsIntoPanel(const Plan& plan, const Task& unpack) {
  if (unpack.phase != Phase::kSlice) return true;  // The kernel makes them there.
  const Register& source = plan.registers[static_cast<size_t>(unpack.consumed[0])];
  if (!source.info.IsMatrix() || source.info.format == Format::kSparse) return false;
  return std::any_of(plan.tasks.begin(), plan.tasks.end(), [&](const Task& task) {
    return task.id == source.producer && task.kind == TaskKind::kAccumulate;
  });
}

// Panels that are read may be put together, those that are collected are joined until they have a megabyte,
// and one that leaves is there until it is written.
InTransit InTransitOf(const Plan& plan, const Task& task) {
  constexpr int64_t kJoined = int64_t{1} << 20;
  InTransit held;
  if (plan.streams[task.id.stream()].kind != StreamKind::kDisk) return held;
  if (task.kind == TaskKind::kUnpack && !ReadsIntoPanel(plan, task))
    for (const RegisterId id : task.produced)
      held.of_panels = std::max(held.of_panels, BlockBytesOf(plan.registers[static_cast<size_t>(id)].info));
  if (task.kind == TaskKind::kAccumulate && task.phase == Phase::kPanels) {
    held.of_panels = BlockBytesOf(plan.registers[static_cast<size_t>(task.consumed[0])].info);
    if (held.of_panels < kJoined) held.fixed = 2 * kJoined;
  }
  return held;
}

// What a write holds of rows that pass: those that wait for others to become a block of the file, and both
// joined. One that reads a handle has the rows that it reads, too, and those that they are put together from.
InTransit HeldByWrite(const Plan& plan, const Task& task, const std::vector<bool>& handles) {
  constexpr int64_t kWaiting = int64_t{2} << 20;
  InTransit held;
  if (task.node == kNoNode || !ops::HasRole(plan.graph[task.node], ops::Role::kWrite)) return held;
  if (task.kind == TaskKind::kAccumulate) return {.of_panels = 0, .fixed = kWaiting};
  const int64_t most = ops::HeldBytesOf(plan.graph[task.node], ops::kMostHeldByWrite);
  for (const RegisterId id : task.consumed)
    if (id >= 0 && handles[static_cast<size_t>(id)])
      held = {.of_panels = std::min(
                  most, SaturatingProduct(2, KnownBytes(plan.registers[static_cast<size_t>(id)].info))),
              .fixed = kWaiting};
  return held;
}

void MakeAtLeast(const InTransit& other, InTransit* most) {
  if (SaturatingSum(other.of_panels, other.fixed) > SaturatingSum(most->of_panels, most->fixed))
    *most = other;
}

}  // namespace

InTransit InTransitOn(const Plan& plan, int32_t rank) {
  const std::vector<bool> handles = HandlesOf(plan);
  const TaskRange range = TasksOfRank(plan, rank);
  // One panel is read while another one is computed with, or written. Several writes of a pass append to
  // their files side by side.
  InTransit read, computed;
  int64_t waiting = 0;
  for (size_t i = range.first; i < range.last; ++i) {
    const Task& task = plan.tasks[i];
    const InTransit by_write = HeldByWrite(plan, task, handles);
    if (task.kind == TaskKind::kAccumulate)
      waiting = SaturatingSum(waiting, by_write.fixed);
    else
      MakeAtLeast(by_write, &computed);
    MakeAtLeast(InTransitOf(plan, task), task.kind == TaskKind::kUnpack ? &read : &computed);
    MakeAtLeast({.of_panels = HeldOfPanels(plan, task), .fixed = 0}, &computed);
  }
  return {.of_panels = SaturatingSum(read.of_panels, computed.of_panels),
          .fixed = SaturatingSum(SaturatingSum(read.fixed, computed.fixed), waiting)};
}

int64_t BytesForKernels(int64_t memory_bytes, int64_t working) {
  constexpr int64_t kPart = 8, kMostPart = 4, kLeast = int64_t{2} << 20;
  return std::max({memory_bytes / kPart, std::min(kLeast, memory_bytes / kMostPart), working});
}

MemoryOfPlan MemoryOn(const Plan& plan, int32_t rank, int threads) {
  MemoryOfPlan memory;
  const std::vector<bool> handles = HandlesOf(plan);
  const TaskRange range = TasksOfRank(plan, rank);
  const bool has_disk = HasDisk(plan);
  for (size_t i = range.first; i < range.last; ++i) {
    const Task& task = plan.tasks[i];
    const double working = WorkingBytesOf(plan, task) + PayloadsAtWork(plan, task, threads);
    memory.working = std::max(memory.working, static_cast<int64_t>(std::min(working, 9e18)));
    const bool makes_panels = task.phase == Phase::kPanels || IsStageInPanels(plan, task);
    for (const RegisterId id : task.produced) {
      const Register& reg = plan.registers[static_cast<size_t>(id)];
      if (has_disk && makes_panels && handles[static_cast<size_t>(id)])
        memory.panels = SaturatingSum(memory.panels, KnownBytes(reg.info));
    }
  }
  const auto at = static_cast<size_t>(rank);
  memory.values = at < plan.pool_bytes.size() ? plan.pool_bytes[at] : 0;
  const InTransit in_transit = InTransitOn(plan, rank);
  memory.in_transit = SaturatingSum(in_transit.of_panels, in_transit.fixed);
  return memory;
}

}  // namespace heddle::scheduler
