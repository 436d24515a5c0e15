// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/programs/plan.h"
#include "core/values/sizes.h"

namespace heddle::scheduler {

/// Writes more tasks and registers of one rank into a plan.
class TaskWriter {
 public:
  static constexpr RegisterId kNone = -1;

  /// `tasks`: those that the rank has so far.
  TaskWriter(std::span<const Task> tasks, Plan* plan) : plan_(*plan) {
    for (const Task& task : tasks) {
      uint32_t& next = next_index_[task.id.stream()];
      next = std::max(next, task.id.index() + 1);
    }
  }

  static size_t Index(RegisterId id) { return static_cast<size_t>(id); }
  TaskId IdOn(uint32_t stream, TaskId like) {
    return TaskId::Make(like.rank(), plan_.streams[stream].device, stream, next_index_[stream]++);
  }
  // What brings panels to a task on a device, and takes them from it, is the processor's.
  TaskId NewId(TaskId like, uint32_t stream) {
    return IdOn(plan_.streams[stream].device.IsHost() ? stream : 0, like);
  }
  // Every plan in which a value is panels has such a stream.
  uint32_t DiskStream() {
    const auto is_disk = [](const StreamDescription& stream) { return stream.kind == StreamKind::kDisk; };
    auto found = std::find_if(plan_.streams.begin(), plan_.streams.end(), is_disk);
    if (found == plan_.streams.end())
      found = plan_.streams.insert(found,
                                   {.kind = StreamKind::kDisk, .name = std::string(Name(StreamKind::kDisk))});
    return static_cast<uint32_t>(found - plan_.streams.begin());
  }
  // What waits for files acts beside what computes.
  void PutOnDisk(Task* task) { task->id = NewId(task->id, DiskStream()); }
  Task NewTask(TaskKind kind, Phase phase, const Task& like) {
    Task task;
    task.id = NewId(like.id, like.id.stream());
    task.kind = kind;
    task.phase = phase;
    task.node = like.node;
    return task;
  }
  RegisterId NewRegister(Task* producer, ValueInfo info, bool control = false) {
    Register reg;
    reg.id = static_cast<RegisterId>(plan_.registers.size());
    reg.producer = producer->id;
    reg.control = control;
    reg.bytes = control ? 0 : KnownBytes(info);
    reg.info = std::move(info);
    producer->produced.push_back(reg.id);
    plan_.registers.push_back(std::move(reg));
    return plan_.registers.back().id;
  }
  void Read(Task* task, RegisterId id) {
    std::vector<TaskId>& consumers = plan_.registers[Index(id)].consumers;
    if (std::find(consumers.begin(), consumers.end(), task->id) == consumers.end())
      consumers.push_back(task->id);
  }
  void Consume(Task* task, RegisterId id) {
    task->consumed.push_back(id);
    if (id != kNone) Read(task, id);
  }
  void Await(Task* task, RegisterId id) {
    task->control_in.push_back(id);
    Read(task, id);
  }
  // It makes what `task` has made so far.
  void TakeOver(Task* task, TaskId id) {
    task->id = id;
    for (const RegisterId made : task->produced) plan_.registers[Index(made)].producer = id;
  }
  Register& RegisterOf(RegisterId id) { return plan_.registers[Index(id)]; }

 protected:
  Plan& plan_;

 private:
  std::map<uint32_t, uint32_t> next_index_;  // By stream.
};

}  // namespace heddle::scheduler
