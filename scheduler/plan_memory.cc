// SPDX-License-Identifier: Apache-2.0
#include "scheduler/plan_memory.h"

#include <algorithm>
#include <map>

namespace heddle::scheduler {

void MeasurePeak(Plan* plan) {
  std::map<TaskId, size_t> order;
  for (size_t i = 0; i < plan->tasks.size(); ++i) order[plan->tasks[i].id] = i;
  std::vector<int64_t> change(plan->tasks.size() + 1, 0);  // bytes that begin (+) or end (-) before task i
  std::vector<size_t> end_of_rank(static_cast<size_t>(plan->ranks), 0);
  for (size_t i = 0; i < plan->tasks.size(); ++i) end_of_rank[plan->tasks[i].id.rank()] = i + 1;
  for (const Register& reg : plan->registers) {
    if (reg.bytes == 0) continue;
    const size_t begin = order.at(reg.producer);
    size_t end = begin + 1;
    for (TaskId consumer : reg.consumers)
      end = std::max(end, consumer.rank() == reg.producer.rank() ? order.at(consumer) + 1 : end_of_rank[reg.producer.rank()]);
    change[begin] += reg.bytes * reg.slots;
    change[end] -= reg.bytes * reg.slots;
  }
  plan->peak_bytes.assign(static_cast<size_t>(plan->ranks), 0);
  int64_t alive = 0;
  for (size_t i = 0; i < plan->tasks.size(); ++i) {
    alive += change[i];
    int64_t& peak = plan->peak_bytes[plan->tasks[i].id.rank()];
    peak = std::max(peak, alive);
  }
}

Status CheckMemory(const Plan& plan, int64_t memory_bytes) {
  if (memory_bytes <= 0) return OkStatus();
  for (int32_t rank = 0; rank < plan.ranks; ++rank) {
    const int64_t peak = plan.peak_bytes[static_cast<size_t>(rank)];
    if (peak <= memory_bytes) continue;
    const Register* largest = nullptr;
    for (const Register& reg : plan.registers)
      if (reg.producer.rank() == static_cast<uint32_t>(rank) && (!largest || reg.bytes > largest->bytes)) largest = &reg;
    const Task* task = nullptr;
    for (const Task& candidate : plan.tasks)
      if (largest && candidate.id == largest->producer) task = &candidate;
    Status status = ResourceExhausted("out of memory: this block needs {} bytes on worker {}, the limit is {} bytes", peak,
                                      rank, memory_bytes);
    if (task && task->node != kNoNode) {
      const Node& node = plan.graph[task->node];
      status = status.At(node.position).WithNote(
          fmt::format("largest value: the {} result of '{}', {} bytes", largest->info.shape, node.op, largest->bytes));
    }
    return status.WithNote("give more memory (--memory), use more workers, or work on fewer rows at a time");
  }
  return OkStatus();
}

}  // namespace heddle::scheduler
