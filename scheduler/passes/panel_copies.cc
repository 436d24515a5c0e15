// SPDX-License-Identifier: Apache-2.0
#include "scheduler/passes/panel_copies.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/programs/input_infos.h"
#include "core/programs/task_places.h"
#include "ops/base/operator.h"
#include "ops/device/run/run_on_device.h"
#include "scheduler/passes/plan_passes.h"
#include "scheduler/passes/task_writer.h"

namespace heddle::scheduler {
namespace {

// A panel that is copied or computed, and one that is read.
constexpr int32_t kSlotsOfCopy = 2;

// The copies of one rank: of tasks [first, last) of the plan.
class RankCopies : private TaskWriter {
 public:
  RankCopies(Plan* plan, Device device, std::vector<Task> tasks, const std::vector<PlanPass>& passes)
      : TaskWriter(tasks, plan),
        device_(device),
        tasks_(std::move(tasks)),
        places_(tasks_),
        before_(tasks_.size()),
        after_(tasks_.size()),
        pass_of_(tasks_.size(), nullptr) {
    for (const PlanPass& pass : passes)
      for (size_t i = pass.begin; i < pass.end; ++i) pass_of_[i] = &pass;
  }

  std::vector<Task> Run() {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (!Computes(tasks_[i].id)) continue;
      for (size_t input = 0; input < tasks_[i].consumed.size(); ++input) BringInput(i, input);
      PlaceOutputs(i);
    }
    std::vector<Task> all;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      for (Task& task : before_[i]) all.push_back(std::move(task));
      all.push_back(std::move(tasks_[i]));
      for (Task& task : after_[i]) all.push_back(std::move(task));
    }
    return all;
  }

 private:
  // Whether the task is an operator on the device.
  bool Computes(TaskId id) const {
    return id.device() == device_ && plan_.streams[id.stream()].kind == StreamKind::kCompute;
  }
  bool AllCompute(const std::vector<TaskId>& tasks) const {
    return std::all_of(tasks.begin(), tasks.end(), [&](TaskId id) { return Computes(id); });
  }
  // Whether the reader of a value takes it in the memory of the device: an operator, or what repeats it for
  // operators alone.
  bool ReadsThere(TaskId id) const {
    if (Computes(id)) return true;
    const size_t reader = places_.Of(id);
    if (reader == TaskPlaces::kNone || tasks_[reader].kind != TaskKind::kRepeat) return false;
    const std::vector<RegisterId>& made = tasks_[reader].produced;
    return std::all_of(made.begin(), made.end(), [&](RegisterId made_id) {
      const std::vector<TaskId>& readers = plan_.registers[Index(made_id)].consumers;
      return !readers.empty() && AllCompute(readers);
    });
  }

  size_t ProducerOf(RegisterId id) const { return places_.Of(plan_.registers[Index(id)].producer); }
  bool IsInPass(size_t task) const { return pass_of_[task] != nullptr; }

  void BringInput(size_t i, size_t input) {
    const RegisterId id = tasks_[i].consumed[input];
    if (id == kNone || !RegisterOf(id).info.IsMatrix() || !RegisterOf(id).device.IsHost()) return;
    const size_t producer = ProducerOf(id);
    const bool is_repeated = producer != TaskPlaces::kNone && tasks_[producer].kind == TaskKind::kRepeat;
    const RegisterId there = is_repeated ? RepeatedThere(id, producer) : CopyOf(id, i);
    Replace(&tasks_[i], input, there);
  }

  // The task reads another register than before, wherever it did.
  void Replace(Task* task, size_t input, RegisterId there) {
    const RegisterId id = task->consumed[input];
    if (id == there) return;
    task->consumed[input] = there;
    Read(task, there);
    if (std::find(task->consumed.begin(), task->consumed.end(), id) == task->consumed.end())
      std::erase(RegisterOf(id).consumers, task->id);
  }

  // A copy in the memory of the device of what the host has, made before task `reader` acts: at each of its
  // acts, or once, before the pass, of what is there for all of them.
  RegisterId CopyOf(RegisterId id, size_t reader) {
    if (!RegisterOf(id).device.IsHost()) return id;
    if (const auto found = there_.find(id); found != there_.end()) return found->second;
    const size_t producer = ProducerOf(id);
    const bool is_of_pass = producer != TaskPlaces::kNone && pass_of_[producer] == pass_of_[reader];
    const size_t place = is_of_pass || !IsInPass(reader) ? reader : pass_of_[reader]->begin;
    Task copy = NewCopy(StreamKind::kCopyIn, id);
    Consume(&copy, id);
    const RegisterId there = MakeLike(id, &copy, device_);
    if (is_of_pass && IsInPass(reader)) RegisterOf(there).slots = kSlotsOfCopy;
    before_[place].push_back(std::move(copy));
    return there_[id] = there;
  }

  // What a task of the host hands on at each act, in the memory of the device.
  RegisterId RepeatedThere(RegisterId id, size_t repeat) {
    if (const auto found = there_.find(id); found != there_.end()) return found->second;
    const RegisterId source = CopyOf(tasks_[repeat].consumed[0], repeat);
    if (AllCompute(RegisterOf(id).consumers)) {
      Replace(&tasks_[repeat], 0, source);
      RegisterOf(id).device = device_;
      return id;
    }
    const Task& old = tasks_[repeat];
    Task task = NewTask(old.kind, old.phase, old);
    task.rate = old.rate;
    Consume(&task, source);
    const RegisterId there = MakeLike(id, &task, device_);
    after_[repeat].push_back(std::move(task));
    return there_[id] = there;
  }

  void PlaceOutputs(size_t i) {
    const std::vector<RegisterId> produced = tasks_[i].produced;
    for (size_t output = 0; output < produced.size(); ++output)
      if (Stays(tasks_[i], output)) PlaceOutput(i, output);
  }

  bool Stays(const Task& task, size_t output) const {
    const Register& reg = plan_.registers[Index(task.produced[output])];
    if (reg.control || !reg.info.IsMatrix()) return false;
    const Node& node = plan_.graph[task.node];
    const std::vector<ValueInfo> infos = InputInfos(plan_.graph, node);
    // Lists of what rows come to are the host's.
    const bool is_list =
        task.phase == Phase::kPartial && ops::RowRuleOf(node, infos) == ops::RowRule::kReduce;
    return !is_list && ops::StaysOnDevice(node, infos, output);
  }

  void PlaceOutput(size_t i, size_t output) {
    const RegisterId id = tasks_[i].produced[output];
    const std::vector<TaskId> readers = RegisterOf(id).consumers;
    RegisterId there = id;
    if (!std::all_of(readers.begin(), readers.end(), [&](TaskId reader) { return ReadsThere(reader); })) {
      // The host's readers find the register that they know.
      Task copy = NewCopy(StreamKind::kCopyOut, id);
      there = MakeLike(id, &tasks_[i], device_);
      tasks_[i].produced.pop_back();
      tasks_[i].produced[output] = there;
      Consume(&copy, there);
      copy.produced.push_back(id);
      RegisterOf(id).producer = copy.id;
      if (IsInPass(i)) RegisterOf(id).slots = std::max(RegisterOf(id).slots, kSlotsOfCopy);
      after_[i].insert(after_[i].begin(), std::move(copy));
      there_[id] = there;
    }
    RegisterOf(there).device = device_;
    if (IsInPass(i)) RegisterOf(there).slots = kSlotsOfCopy;
  }

  Task NewCopy(StreamKind kind, RegisterId of) {
    const size_t producer = ProducerOf(of);
    const auto is_stream = [&](const StreamDescription& stream) {
      return stream.kind == kind && stream.device == device_;
    };
    const auto stream = std::find_if(plan_.streams.begin(), plan_.streams.end(), is_stream);
    HEDDLE_CHECK(stream != plan_.streams.end(), "a device has streams of copies");
    Task task;
    task.id =
        IdOn(static_cast<uint32_t>(stream - plan_.streams.begin()), plan_.registers[Index(of)].producer);
    task.phase = Phase::kTransfer;
    task.node = producer == TaskPlaces::kNone ? kNoNode : tasks_[producer].node;
    return task;
  }

  // Another register for the values of `id`, made by `task`.
  RegisterId MakeLike(RegisterId id, Task* task, Device device) {
    const int64_t bytes = RegisterOf(id).bytes;
    const RegisterId made = NewRegister(task, RegisterOf(id).info);
    RegisterOf(made).bytes = bytes;
    RegisterOf(made).device = device;
    return made;
  }

  const Device device_;
  std::vector<Task> tasks_;
  const TaskPlaces places_;
  std::vector<std::vector<Task>> before_, after_;  // Of each task, what is new beside it.
  std::vector<const PlanPass*> pass_of_;           // By task; nullptr: it acts once.
  std::map<RegisterId, RegisterId> there_;  // What the host reads, in the memory of the device.
};

}  // namespace

void CopyPanels(Plan* plan, Device device) {
  std::vector<Task> all;
  for (int32_t rank = 0; rank < plan->ranks; ++rank) {
    const TaskRange range = TasksOfRank(*plan, rank);
    const std::vector<PlanPass> passes = PassesOf(*plan, range.first, range.last);
    std::vector<Task> tasks(plan->tasks.begin() + static_cast<std::ptrdiff_t>(range.first),
                            plan->tasks.begin() + static_cast<std::ptrdiff_t>(range.last));
    for (Task& task : RankCopies(plan, device, std::move(tasks), passes).Run())
      all.push_back(std::move(task));
  }
  plan->tasks = std::move(all);
}

}  // namespace heddle::scheduler
