// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/programs/plan.h"

namespace heddle::actor {

/// The streams of plans that are written by hand.
inline constexpr uint32_t kCompute = static_cast<uint32_t>(StreamKind::kCompute);
inline constexpr uint32_t kHost = static_cast<uint32_t>(StreamKind::kHost);
inline constexpr uint32_t kNetwork = static_cast<uint32_t>(StreamKind::kNetwork);

/// Writes plans by hand: tasks in order, registers as they are made. Streams beyond the standard ones are of
/// disks. For tests.
class PlanWriter {
 public:
  explicit PlanWriter(int32_t ranks) { plan_.ranks = ranks; }

  /// Returns the position of the new task.
  size_t Add(TaskKind kind, uint32_t rank, uint32_t stream, std::vector<RegisterId> consumed,
             int64_t rate = 1, int64_t count = 1) {
    Task task;
    task.id = TaskId::Make(rank, stream, next_index_[TaskId::Make(rank, stream, 0)]++);
    task.kind = kind;
    task.rate = rate;
    task.count = count;
    for (RegisterId id : consumed) {
      if (id >= 0) AddConsumer(id, task.id);
    }
    task.consumed = std::move(consumed);
    plan_.tasks.push_back(std::move(task));
    return plan_.tasks.size() - 1;
  }
  RegisterId Output(size_t task, int32_t slots = 1) {
    Register output;
    output.id = static_cast<RegisterId>(plan_.registers.size());
    output.producer = plan_.tasks[task].id;
    output.slots = slots;
    plan_.tasks[task].produced.push_back(output.id);
    plan_.registers.push_back(output);
    return output.id;
  }
  RegisterId ControlOutput(size_t task, int32_t slots = 1) {
    const RegisterId id = Output(task, slots);
    reg(id).control = true;
    return id;
  }
  /// `to` acts only after the producer of `control` has.
  void Control(RegisterId control, size_t to) {
    AddConsumer(control, plan_.tasks[to].id);
    plan_.tasks[to].control_in.push_back(control);
  }

  Task& task(size_t i) { return plan_.tasks[i]; }
  size_t size() const { return plan_.tasks.size(); }
  Register& reg(RegisterId id) { return plan_.registers[static_cast<size_t>(id)]; }
  Graph& graph() { return plan_.graph; }
  void SetKey(uint64_t key) { plan_.key = key; }

  Plan Finish() const {
    Plan plan = plan_;
    for (const Task& task : plan.tasks)
      while (plan.streams.size() <= task.id.stream())
        plan.streams.push_back({.kind = StreamKind::kDisk, .name = std::string(Name(StreamKind::kDisk))});
    std::stable_sort(plan.tasks.begin(), plan.tasks.end(),
                     [](const Task& a, const Task& b) { return a.id.rank() < b.id.rank(); });
    return plan;
  }

 private:
  void AddConsumer(RegisterId id, TaskId task) {
    std::vector<TaskId>& consumers = reg(id).consumers;
    if (std::find(consumers.begin(), consumers.end(), task) == consumers.end()) consumers.push_back(task);
  }

  Plan plan_;
  std::map<TaskId, uint32_t> next_index_;
};

}  // namespace heddle::actor
