// SPDX-License-Identifier: Apache-2.0
#include "scheduler/liveness.h"

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "core/programs/task_places.h"

namespace heddle::scheduler {
namespace {

constexpr int64_t kUnset = -1;

bool HoldsInputs(TaskKind kind) { return kind == TaskKind::kRepeat || kind == TaskKind::kUnpack; }
bool HoldsOutputs(TaskKind kind) { return kind == TaskKind::kAccumulate || kind == TaskKind::kPack; }

// One (register, consumer) pair.
struct Edge {
  RegisterId register_id = 0;
  size_t producer = 0;
  size_t consumer = 0;
  int64_t filled = 0;    // published and not yet released by this consumer
  int64_t released = 0;  // by this consumer, in the order of publication
};

// The slots of one register that are not free, oldest first.
struct SlotsInUse {
  int64_t count = 0;
  int64_t first = 0;            // how many have been taken before the oldest one listed
  std::deque<int64_t> readers;  // of each, who has not released it yet; 0: free again
};

struct TaskState {
  std::vector<size_t> in;       // edges
  std::vector<RegisterId> out;  // registers, data and control
  int64_t acts_needed = kUnset;
  int64_t acts = 0;
  int64_t waiting_outputs = 0;  // repeat/unpack: outputs of the held input that are not all back yet
};

class TokenGame {
 public:
  explicit TokenGame(const Plan& plan) : plan_(plan) {}

  Status Build() {
    const TaskPlaces places(plan_.tasks);
    tasks_.resize(plan_.tasks.size());
    edges_of_.resize(plan_.registers.size());
    in_use_.resize(plan_.registers.size());
    for (const Register& reg : plan_.registers) {
      const size_t producer = places.Of(reg.producer);
      if (producer == TaskPlaces::kNone) return Internal("register {} has no producer", reg.id);
      tasks_[producer].out.push_back(reg.id);
      for (TaskId id : reg.consumers) {
        const size_t consumer = places.Of(id);
        if (consumer == TaskPlaces::kNone) return Internal("register {} has an unknown consumer", reg.id);
        edges_of_[static_cast<size_t>(reg.id)].push_back(edges_.size());
        tasks_[consumer].in.push_back(edges_.size());
        edges_.push_back({reg.id, producer, consumer});
      }
    }
    return CountActs();
  }

  // Plays to the end. False when stuck.
  bool Play() {
    std::vector<size_t> ready;
    std::vector<bool> queued(tasks_.size(), true);
    for (size_t i = tasks_.size(); i-- > 0;) ready.push_back(i);
    while (!ready.empty()) {
      const size_t task = ready.back();
      ready.pop_back();
      queued[task] = false;
      while (CanAct(task))
        Act(task, [&](size_t touched) {
          if (!queued[touched]) {
            queued[touched] = true;
            ready.push_back(touched);
          }
        });
    }
    return std::all_of(tasks_.begin(), tasks_.end(),
                       [](const TaskState& t) { return t.acts == t.acts_needed; });
  }

  // Registers on which a task waits for a free slot though all its inputs are there.
  std::vector<RegisterId> BlockedForSlots() const {
    std::vector<RegisterId> blocked;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i].acts == tasks_[i].acts_needed || !InputsReady(i)) continue;
      for (RegisterId out : tasks_[i].out)
        if (!HasFreeSlot(out)) blocked.push_back(out);
    }
    return blocked;
  }

  std::string Explain() const {
    std::string text;
    int named = 0;
    for (size_t i = 0; i < tasks_.size() && named < 6; ++i) {
      if (tasks_[i].acts == tasks_[i].acts_needed) continue;
      ++named;
      text += fmt::format(" task {:x} ({} of {} acts) waits for", plan_.tasks[i].id.bits, tasks_[i].acts,
                          tasks_[i].acts_needed);
      for (size_t e : tasks_[i].in)
        if (edges_[e].filled == 0) text += fmt::format(" register {}", edges_[e].register_id);
      for (RegisterId out : tasks_[i].out)
        if (!HasFreeSlot(out)) text += fmt::format(" a slot of register {}", out);
      text += ";";
    }
    return text;
  }

 private:
  // Acts per run, from the sources' counts along the edges; every input of a task must ask for the same
  // number.
  Status CountActs() {
    std::vector<size_t> missing(tasks_.size());
    std::vector<size_t> ready;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      missing[i] = tasks_[i].in.size();
      if (missing[i] == 0) {
        tasks_[i].acts_needed = plan_.tasks[i].count;
        ready.push_back(i);
      }
    }
    size_t done = 0;
    while (!ready.empty()) {
      const size_t i = ready.back();
      ready.pop_back();
      ++done;
      const Task& task = plan_.tasks[i];
      const int64_t acts = tasks_[i].acts_needed;
      if (HoldsOutputs(task.kind) && acts % task.rate != 0)
        return Internal("rates: task {:x} acts {} times, not a multiple of its rate {}", task.id.bits, acts,
                        task.rate);
      const int64_t pieces = HoldsOutputs(task.kind) ? acts / task.rate : acts;
      for (RegisterId out : tasks_[i].out) {
        for (size_t e : edges_of_[static_cast<size_t>(out)]) {
          const size_t consumer = edges_[e].consumer;
          const int64_t wanted =
              HoldsInputs(plan_.tasks[consumer].kind) ? pieces * plan_.tasks[consumer].rate : pieces;
          int64_t& needed = tasks_[consumer].acts_needed;
          if (needed != kUnset && needed != wanted)
            return Internal("rates: task {:x} would act {} times by one input and {} times by register {}",
                            plan_.tasks[consumer].id.bits, needed, wanted, out);
          needed = wanted;
          if (--missing[consumer] == 0) ready.push_back(consumer);
        }
      }
    }
    if (done != tasks_.size()) return Internal("the plan's tasks depend on each other in a cycle");
    return OkStatus();
  }

  int64_t Rate(size_t task) const { return plan_.tasks[task].rate; }

  bool HasFreeSlot(RegisterId id) const {
    return in_use_[static_cast<size_t>(id)].count < plan_.registers[static_cast<size_t>(id)].slots;
  }

  bool InputsReady(size_t i) const {
    // A repeat keeps its input until every output of it came back, and takes the next one only then.
    if (HoldsInputs(plan_.tasks[i].kind) && tasks_[i].acts % Rate(i) == 0 && tasks_[i].waiting_outputs > 0)
      return false;
    return std::all_of(tasks_[i].in.begin(), tasks_[i].in.end(),
                       [&](size_t e) { return edges_[e].filled > 0; });
  }

  bool CanAct(size_t i) const {
    const TaskState& task = tasks_[i];
    if (task.acts == task.acts_needed || !InputsReady(i)) return false;
    // Accumulate and pack hold their output slot from the first of `rate` acts.
    if (HoldsOutputs(plan_.tasks[i].kind) && task.acts % Rate(i) != 0) return true;
    return std::all_of(task.out.begin(), task.out.end(), [&](RegisterId out) { return HasFreeSlot(out); });
  }

  void TakeSlot(RegisterId id) {
    SlotsInUse& slots = in_use_[static_cast<size_t>(id)];
    ++slots.count;
    slots.readers.push_back(static_cast<int64_t>(edges_of_[static_cast<size_t>(id)].size()));
  }

  void FreeLastSlot(RegisterId id) {
    SlotsInUse& slots = in_use_[static_cast<size_t>(id)];
    --slots.count;
    slots.readers.pop_back();
  }

  template <typename Touch>
  void Release(size_t e, const Touch& touch) {
    Edge& edge = edges_[e];
    SlotsInUse& slots = in_use_[static_cast<size_t>(edge.register_id)];
    --edge.filled;
    if (--slots.readers[static_cast<size_t>(edge.released++ - slots.first)] > 0) return;
    --slots.count;
    for (; !slots.readers.empty() && slots.readers.front() == 0; ++slots.first) slots.readers.pop_front();
    const size_t producer = edge.producer;
    if (HoldsInputs(plan_.tasks[producer].kind) && --tasks_[producer].waiting_outputs == 0 &&
        tasks_[producer].acts % Rate(producer) == 0)
      for (size_t in : tasks_[producer].in) Release(in, touch);
    touch(producer);
  }

  template <typename Touch>
  void Act(size_t i, const Touch& touch) {
    TaskState& task = tasks_[i];
    const TaskKind kind = plan_.tasks[i].kind;
    if (HoldsOutputs(kind) && task.acts % Rate(i) == 0)
      for (RegisterId out : task.out) TakeSlot(out);
    ++task.acts;
    if (HoldsInputs(kind)) ++task.waiting_outputs;
    if (!HoldsOutputs(kind) || task.acts % Rate(i) == 0) Publish(i, touch);
    if (!HoldsInputs(kind))
      for (size_t e : task.in) Release(e, touch);
    if (HoldsInputs(kind) && task.waiting_outputs == 0 && task.acts % Rate(i) == 0)
      for (size_t e : task.in) Release(e, touch);
  }

  template <typename Touch>
  void Publish(size_t i, const Touch& touch) {
    bool outstanding = false;
    for (RegisterId out : tasks_[i].out) {
      const auto& edges = edges_of_[static_cast<size_t>(out)];
      if (edges.empty()) {  // nobody reads it: free at once
        if (HoldsOutputs(plan_.tasks[i].kind)) FreeLastSlot(out);
        continue;
      }
      if (!HoldsOutputs(plan_.tasks[i].kind)) TakeSlot(out);
      for (size_t e : edges) {
        ++edges_[e].filled;
        outstanding = true;
        touch(edges_[e].consumer);
      }
    }
    if (HoldsInputs(plan_.tasks[i].kind)) {
      // waiting_outputs counts slots; several registers with readers count each.
      int64_t read = 0;
      for (RegisterId out : tasks_[i].out) read += edges_of_[static_cast<size_t>(out)].empty() ? 0 : 1;
      tasks_[i].waiting_outputs += outstanding ? read - 1 : -1;
    }
  }

  const Plan& plan_;
  std::vector<TaskState> tasks_;
  std::vector<Edge> edges_;
  std::vector<std::vector<size_t>> edges_of_;  // register -> edges
  std::vector<SlotsInUse> in_use_;             // by register
};

}  // namespace

Status CheckLive(const Plan& plan) {
  TokenGame game(plan);
  HEDDLE_RETURN_IF_ERROR(game.Build());
  if (game.Play()) return OkStatus();
  return Internal("the plan would stall:{}", game.Explain());
}

Status AssignSlots(Plan* plan) {
  constexpr int kMostSlots = 255;
  for (;;) {
    TokenGame game(*plan);
    HEDDLE_RETURN_IF_ERROR(game.Build());
    if (game.Play()) return OkStatus();
    bool raised = false;
    for (RegisterId id : game.BlockedForSlots()) {
      Register& reg = plan->registers[static_cast<size_t>(id)];
      if (reg.slots >= kMostSlots) continue;
      ++reg.slots;
      raised = true;
    }
    if (!raised) return Internal("the plan would stall whatever its slots:{}", game.Explain());
  }
}

}  // namespace heddle::scheduler
