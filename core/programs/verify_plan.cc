// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "core/programs/plan.h"
#include "core/programs/task_places.h"

// Verify(Plan): see core/programs/plan.h.
namespace heddle {
namespace {

std::string Text(TaskId id) { return fmt::format("{}:{}:{}", id.rank(), id.stream(), id.index()); }

class Verifier {
 public:
  explicit Verifier(const Plan& plan)
      : plan_(plan), places_(plan.tasks), is_produced_(plan.registers.size(), false) {}

  Status Run() {
    HEDDLE_RETURN_IF_ERROR(Verify(plan_.graph));
    if (plan_.ranks < 1) return Internal("broken plan: {} ranks", plan_.ranks);
    for (size_t i = 0; i < plan_.registers.size(); ++i) {
      const Register& reg = plan_.registers[i];
      if (reg.id != static_cast<RegisterId>(i))
        return Internal("broken plan: register {} stands at place {}", reg.id, i);
      if (reg.slots < 1 || reg.bytes < 0) return Broken(reg, "has no slot or a negative size");
      keeps_values_ = keeps_values_ || !reg.device.IsHost();
      if (!reg.device.IsHost() && (reg.control || !HasStreamOf(reg.device)))
        return Broken(reg, "is in the memory of a device that the plan does not use");
    }
    HEDDLE_RETURN_IF_ERROR(CheckTasks());
    std::sort(readings_.begin(), readings_.end());
    readings_.erase(std::unique(readings_.begin(), readings_.end()), readings_.end());
    for (const Register& reg : plan_.registers) HEDDLE_RETURN_IF_ERROR(CheckRegister(reg));
    for (const Task& task : plan_.tasks) HEDDLE_RETURN_IF_ERROR(CheckMemorySpaces(task));
    for (const auto* bindings : {&plan_.live_in, &plan_.live_out})
      for (const Binding& binding : *bindings) HEDDLE_RETURN_IF_ERROR(CheckBinding(binding));
    for (const auto* bytes : {&plan_.peak_bytes, &plan_.pool_bytes})
      if (!bytes->empty() && bytes->size() != static_cast<size_t>(plan_.ranks))
        return Internal("broken plan: peak bytes of {} ranks, not {}", bytes->size(), plan_.ranks);
    return OkStatus();
  }

 private:
  using Reading = std::pair<RegisterId, TaskId>;

  static Status Broken(const Register& reg, std::string_view why) {
    return Internal("broken plan: register {} {}", reg.id, why);
  }
  Status Broken(const Task& task, std::string_view why) const {
    const Status status = Internal("broken plan: task {} ({}) {}", Text(task.id), Name(task.kind), why);
    return IsNode(task.node) && task.node != kNoNode ? status.At(plan_.graph[task.node].position) : status;
  }
  bool IsNode(NodeId id) const { return id == kNoNode || (id >= 0 && id < plan_.graph.size()); }
  const Register* Find(RegisterId id) const {
    return id >= 0 && id < static_cast<RegisterId>(plan_.registers.size())
               ? &plan_.registers[static_cast<size_t>(id)]
               : nullptr;
  }

  bool HasStreamOf(Device device) const {
    return std::any_of(plan_.streams.begin(), plan_.streams.end(),
                       [&](const StreamDescription& stream) { return stream.device == device; });
  }

  size_t ResultsOf(const Task& task) const {
    return task.node == kNoNode ? 1 : std::max<size_t>(1, plan_.graph[task.node].results.size());
  }

  Status CheckBinding(const Binding& binding) const {
    const auto broken = [&](std::string_view why) {
      return Internal("broken plan: variable {} {}", binding.variable, why);
    };
    if (!IsNode(binding.node)) return broken("is bound to no node");
    if (binding.distribution.IsOne() &&
        (binding.distribution.rank < 0 || binding.distribution.rank >= plan_.ranks))
      return broken("is on a rank that does not exist");
    if (!binding.distribution.IsSplit()) return OkStatus();
    const Split& split = binding.distribution.split;
    if (split.cuts.empty() && !binding.info.IsSized()) return OkStatus();
    if (split.cuts.size() != static_cast<size_t>(plan_.ranks) + 1)
      return broken("is cut for another number of ranks");
    int64_t length = kUnknown;
    switch (split.axis) {
      case Axis::kRows: length = binding.info.shape.rows; break;
      case Axis::kColumns: length = binding.info.shape.columns; break;
    }
    if (split.cuts.front() != 0 || !std::is_sorted(split.cuts.begin(), split.cuts.end()) ||
        (length != kUnknown && split.Length() != length))
      return broken("has cuts that do not ascend to its length");
    return OkStatus();
  }

  // Ids, ranges, and who makes and reads what according to the tasks.
  Status CheckTasks() {
    if (const size_t twice = places_.Double(); twice != TaskPlaces::kNone)
      return Broken(plan_.tasks[twice], "exists twice");
    uint32_t rank = 0;
    for (const Task& task : plan_.tasks) {
      if (task.id.rank() >= static_cast<uint32_t>(plan_.ranks))
        return Broken(task, "is on a rank that does not exist");
      if (task.id.stream() >= plan_.streams.size()) return Broken(task, "is on a stream that does not exist");
      if (task.id.device() != plan_.streams[task.id.stream()].device)
        return Broken(task, "is on another device than its stream");
      if (task.id.rank() < rank) return Broken(task, "is not sorted by rank");
      rank = task.id.rank();
      if (!IsNode(task.node)) return Broken(task, "is an instance of no node");
      if (task.count < 1 || task.rate < 1) return Broken(task, "has a count or rate below one");
      if (task.cost_ns < kUnboundedCost) return Broken(task, "has a negative cost");
      if (task.row_begin < 0 || task.row_begin > task.row_end || task.row_end > task.total_rows)
        return Broken(task, "computes rows outside its matrix");
      HEDDLE_RETURN_IF_ERROR(CheckLists(task));
    }
    return OkStatus();
  }

  Status CheckLists(const Task& task) {
    size_t data_registers = 0;
    for (const RegisterId id : task.produced) {
      const Register* reg = Find(id);
      if (reg == nullptr) return Broken(task, "produces a register that does not exist");
      if (reg->producer != task.id || is_produced_[static_cast<size_t>(id)])
        return Broken(*reg, "has not exactly one producer");
      is_produced_[static_cast<size_t>(id)] = true;
      data_registers += !reg->control;
    }
    // What finishes reductions beside results that are there already makes fewer.
    if (data_registers > 1 && data_registers != ResultsOf(task) &&
        (task.phase != Phase::kFinish || data_registers > ResultsOf(task)) && task.phase != Phase::kStage)
      return Broken(task, "produces other data registers than the results of its node");
    for (const RegisterId id : task.consumed) {
      if (id == -1) continue;
      const Register* reg = Find(id);
      if (reg == nullptr) return Broken(task, "consumes a register that does not exist");
      if (reg->control) return Broken(task, "consumes a control register as data");
      readings_.emplace_back(id, task.id);
    }
    for (const RegisterId id : task.control_in) {
      if (Find(id) == nullptr) return Broken(task, "waits for a register that does not exist");
      readings_.emplace_back(id, task.id);
    }
    return OkStatus();
  }

  Status CheckRegister(const Register& reg) {
    if (!is_produced_[static_cast<size_t>(reg.id)]) return Broken(reg, "has not exactly one producer");
    // A task that reads a register twice (X * X) is one consumer: it is told once and answers once.
    std::vector<TaskId> listed = reg.consumers;
    std::sort(listed.begin(), listed.end());
    const auto readers = std::ranges::equal_range(readings_, reg.id, {}, &Reading::first);
    if (!std::ranges::equal(listed, readers, {}, {}, &Reading::second))
      return Broken(reg, "lists other consumers than the tasks that read it");
    for (const TaskId consumer : reg.consumers)
      if (consumer.rank() != reg.producer.rank() && plan_.tasks[places_.Of(consumer)].kind != TaskKind::kCopy)
        return Broken(reg, "goes to another rank, but not to a copy task");
    return OkStatus();
  }

  Device MemoryOf(RegisterId id) const { return plan_.registers[static_cast<size_t>(id)].device; }

  // Tasks read and write the memory of their device; those of a device give the host what it is to finish,
  // and transfers go between both.
  Status CheckMemorySpaces(const Task& task) const {
    const Device device = task.id.device();
    const StreamKind kind = plan_.streams[task.id.stream()].kind;
    const bool is_copy_stream = kind == StreamKind::kCopyIn || kind == StreamKind::kCopyOut;
    if (is_copy_stream && device.IsHost()) return Broken(task, "copies to and from no device");
    if (is_copy_stream != (task.phase == Phase::kTransfer))
      return Broken(task, is_copy_stream ? "is no transfer, but on a stream of copies"
                                         : "is a transfer, but not on a stream of copies");
    if (!device.IsHost() && (task.kind == TaskKind::kSink || task.kind == TaskKind::kCopy))
      return Broken(task, "is on a device, which only computes");
    if (task.phase == Phase::kTransfer) return CheckTransfer(task, device, kind);
    if (task.kind == TaskKind::kRepeat) return CheckRepeat(task);
    HEDDLE_RETURN_IF_ERROR(CheckVariable(task));
    const bool is_variable = BindingOf(task) != nullptr;
    for (const RegisterId id : task.consumed) {
      if (id == -1 || is_variable) continue;
      if (!MemoryOf(id).IsHost() && MemoryOf(id) != device)
        return Broken(task, fmt::format("reads register {}, which is in the memory of another device", id));
      // Where no value stays there, operators copy what they read within their acts.
      if (MemoryOf(id) != device && keeps_values_ && plan_.registers[static_cast<size_t>(id)].info.IsMatrix())
        return Broken(task, fmt::format("reads register {}, which is not in the memory of its device", id));
    }
    for (const RegisterId id : task.produced)
      if (!is_variable && !MemoryOf(id).IsHost() && MemoryOf(id) != device)
        return Broken(task, fmt::format("makes register {} in the memory of another device", id));
    return OkStatus();
  }

  Status CheckTransfer(const Task& task, Device device, StreamKind kind) const {
    const bool is_one = task.consumed.size() == 1 && task.consumed[0] >= 0 && !task.produced.empty() &&
                        !plan_.registers[static_cast<size_t>(task.produced[0])].control;
    if (!is_one) return Broken(task, "transfers other than one value");
    const Device from = MemoryOf(task.consumed[0]), to = MemoryOf(task.produced[0]);
    const bool is_in = kind == StreamKind::kCopyIn;
    if (from != (is_in ? Device() : device) || to != (is_in ? device : Device()))
      return Broken(task, "transfers from or to another memory than its stream");
    return OkStatus();
  }

  // What it hands on stays where it is.
  Status CheckRepeat(const Task& task) const {
    for (const RegisterId from : task.consumed)
      for (const RegisterId to : task.produced)
        if (from != -1 && !plan_.registers[static_cast<size_t>(to)].control && MemoryOf(from) != MemoryOf(to))
          return Broken(task, "repeats a value in another memory");
    return OkStatus();
  }

  // Of a source or sink of a variable; of the copy on a device a binding of its own tells.
  const Binding* BindingOf(const Task& task) const {
    if (task.phase == Phase::kShape || task.node == kNoNode) return nullptr;
    const bool is_source = task.kind == TaskKind::kSource;
    if (!is_source && task.kind != TaskKind::kSink) return nullptr;
    const std::vector<RegisterId>& values = is_source ? task.produced : task.consumed;
    const Binding* of_node = nullptr;
    for (const Binding& binding : is_source ? plan_.live_in : plan_.live_out) {
      if (binding.node != task.node) continue;
      of_node = &binding;
      if (!values.empty() && values[0] >= 0 && MemoryOf(values[0]) == binding.device) break;
    }
    return of_node;
  }

  Status CheckVariable(const Task& task) const {
    const Binding* const binding = BindingOf(task);
    if (binding == nullptr) return OkStatus();
    const std::vector<RegisterId>& values = task.kind == TaskKind::kSource ? task.produced : task.consumed;
    if (values.empty() || values[0] < 0 || MemoryOf(values[0]) == binding->device) return OkStatus();
    return Broken(task, fmt::format("has variable {} in another memory than its binding", binding->variable));
  }

  const Plan& plan_;
  const TaskPlaces places_;
  std::vector<bool> is_produced_;  // By register.
  bool keeps_values_ = false;      // Some are in the memory of a device.
  std::vector<Reading> readings_;  // Sorted, once all tasks have been looked at.
};

}  // namespace

Status Verify(const Plan& plan) { return Verifier(plan).Run(); }

}  // namespace heddle
