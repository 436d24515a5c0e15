// SPDX-License-Identifier: Apache-2.0
#include "scheduler/plan_memory.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/memory/block_pool.h"
#include "core/memory/ways_out_of_memory.h"
#include "core/programs/input_infos.h"
#include "core/programs/staged_tasks.h"
#include "core/programs/task_places.h"
#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/operator.h"
#include "scheduler/passes/plan_passes.h"

namespace heddle::scheduler {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kMostOfBlock = int64_t{1} << 46;  // Beyond it no block is.
constexpr int64_t kLeastGuardedBytes = 64 << 10;    // Smaller registers are not worth an edge.
constexpr size_t kMostOrderedTasks = 8192;  // Beyond it the bit sets would be larger than what they save.
// Larger blocks are not counted to the byte: sums saturate, with some to spare for rounding up.
constexpr int64_t kMostCounted = INT64_MAX - (int64_t{1} << 20);
constexpr size_t kMostTriedOrders = 256;  // Registers; beyond it one order of placement has to do.

// A register of one rank in the time of its tasks: alive in [begin, end], both included.
struct Lifetime {
  RegisterId id = 0;
  int64_t bytes = 0;  // Of all slots, aligned.
  size_t begin = 0;
  size_t end = 0;
  std::vector<size_t> first;  // The tasks that must not act while its place is used otherwise.
  std::vector<size_t> last;   // The tasks that must have acted before its place is used again.
  int64_t offset = 0;
};

int64_t EndOf(const Lifetime& lifetime) { return SaturatingSum(lifetime.offset, lifetime.bytes); }

bool Meet(const Lifetime& a, const Lifetime& b) { return a.offset < EndOf(b) && b.offset < EndOf(a); }

// Plans the block of one rank in one memory: tasks [first, last) of the plan.
class RankMemory {
 public:
  RankMemory(Plan& plan, Device device, size_t first, size_t last)
      : plan_(plan),
        device_(device),
        first_(first),
        size_(last - first),
        position_(std::span(plan.tasks).subspan(first, last - first)) {}

  /// Plan::peak_bytes and Plan::pool_bytes of the rank; of a device, what its registers take.
  std::pair<int64_t, int64_t> Run() {
    FindPasses();
    FindOrder();
    FindLifetimes();
    const int64_t block = PlaceBest();
    AddGuards();
    return {block, MostOfPool()};
  }

 private:
  using Bits = std::vector<uint64_t>;

  Task& TaskAt(size_t position) { return plan_.tasks[first_ + position]; }
  Register& RegisterOf(RegisterId id) { return plan_.registers[static_cast<size_t>(id)]; }
  bool IsOf(const Task& task, std::string_view op) const {
    return task.node != kNoNode && plan_.graph[task.node].Is(op);
  }

  void FindPasses() {
    passes_ = PassesOf(plan_, first_, first_ + size_);
    pass_of_.assign(size_, kNoPass);
    for (size_t pass = 0; pass < passes_.size(); ++pass)
      for (size_t i = passes_[pass].begin; i < passes_[pass].end; ++i) pass_of_[i] = pass;
  }

  // While a pass is at work, all is alive that one of its tasks makes or reads.
  void Extend(size_t task, Lifetime* lifetime, bool* stays) const {
    if (pass_of_[task] == kNoPass) return;
    const PlanPass& pass = passes_[pass_of_[task]];
    lifetime->end = std::max(lifetime->end, pass.end - 1);
    lifetime->last.insert(lifetime->last.end(), pass.ends.begin(), pass.ends.end());
    // What nothing collects may still be at work when all that collects is through.
    const bool is_collected =
        before_.empty() || std::any_of(pass.ends.begin(), pass.ends.end(),
                                       [&](size_t end) { return end == task || IsBefore(task, end); });
    *stays |= pass.ends.empty() || !is_collected;
  }

  void FindLifetimes() {
    for (size_t i = 0; i < size_; ++i) {
      for (RegisterId id : TaskAt(i).produced) {
        const Register& reg = RegisterOf(id);
        if (reg.bytes == 0 || !(reg.device == device_)) continue;
        Lifetime lifetime{.id = id, .begin = i, .end = i};
        lifetime.bytes =
            SaturatingSum(SaturatingProduct(reg.bytes, reg.slots), kAlignment - 1) / kAlignment * kAlignment;
        bool stays = false;
        for (TaskId consumer : reg.consumers) {
          const size_t reader = position_.Of(consumer);
          stays |= reader == TaskPlaces::kNone;
          if (reader == TaskPlaces::kNone) continue;
          const Task& task = TaskAt(reader);
          stays |= task.kind == TaskKind::kSink && IsOf(task, "assign");
          lifetime.end = std::max(lifetime.end, reader);
          if (pass_of_[reader] == kNoPass) lifetime.last.push_back(reader);
          Extend(reader, &lifetime, &stays);
        }
        lifetime.first = {i};
        if (pass_of_[i] != kNoPass) {
          const PlanPass& pass = passes_[pass_of_[i]];
          Extend(i, &lifetime, &stays);
          lifetime.begin = pass.begin;
          lifetime.first = pass.starts;
        }
        if (lifetime.last.empty()) lifetime.last.push_back(i);
        const bool is_live_in = TaskAt(i).kind == TaskKind::kSource && IsOf(TaskAt(i), "variable");
        if (is_live_in) lifetime.begin = 0;
        if (is_live_in || stays) lifetime.end = size_;
        lifetimes_.push_back(std::move(lifetime));
      }
    }
  }

  // before_[i]: the tasks that the plan's edges on this rank let act before task i.
  void FindOrder() {
    if (size_ > kMostOrderedTasks) return;
    before_.assign(size_, Bits());
    for (size_t i = 0; i < size_; ++i) CollectBefore(i);
  }

  void CollectBefore(size_t i) {
    before_[i].assign((size_ + 63) / 64, 0);
    for (const auto* list : {&TaskAt(i).consumed, &TaskAt(i).control_in}) {
      for (RegisterId id : *list) {
        if (id < 0) continue;
        const size_t producer = position_.Of(RegisterOf(id).producer);
        HEDDLE_DEBUG_CHECK(producer == TaskPlaces::kNone || producer < i, "tasks come after what they read");
        if (producer != TaskPlaces::kNone) AddBefore(producer, i);
      }
    }
  }

  void AddBefore(size_t earlier, size_t later) {
    if (before_.empty()) return;
    for (size_t word = 0; word < before_[later].size(); ++word)
      before_[later][word] |= before_[earlier][word];
    before_[later][earlier / 64] |= uint64_t{1} << (earlier % 64);
  }

  bool IsBefore(size_t earlier, size_t later) const {
    return !before_.empty() && (before_[later][earlier / 64] >> (earlier % 64) & 1) != 0;
  }

  bool MayShare(const Lifetime& a, const Lifetime& b) const {
    const Lifetime& first = a.begin <= b.begin ? a : b;
    const Lifetime& second = a.begin <= b.begin ? b : a;
    if (first.end >= second.begin) return false;
    if (std::min(first.bytes, second.bytes) >= kLeastGuardedBytes) return true;
    return std::all_of(first.last.begin(), first.last.end(), [&](size_t reader) {
      return std::all_of(second.first.begin(), second.first.end(),
                         [&](size_t task) { return IsBefore(reader, task); });
    });
  }

  // Several deterministic orders of placement; the smallest block wins, the first of equals.
  int64_t PlaceBest() {
    const auto length = [](const Lifetime& l) { return static_cast<int64_t>(l.end - l.begin) + 1; };
    using Key = std::function<double(const Lifetime&)>;
    const std::vector<Key> keys = {
        [](const Lifetime& l) { return static_cast<double>(l.bytes); },
        [&](const Lifetime& l) { return static_cast<double>(length(l)); },
        [&](const Lifetime& l) { return static_cast<double>(l.bytes) * static_cast<double>(length(l)); },
        [](const Lifetime& l) { return -static_cast<double>(l.begin); },
    };
    std::vector<int64_t> best_offsets;
    int64_t best = std::numeric_limits<int64_t>::max();
    for (const Key& key : keys) {
      std::vector<Lifetime*> order;
      for (Lifetime& lifetime : lifetimes_) order.push_back(&lifetime);
      std::stable_sort(order.begin(), order.end(),
                       [&](const Lifetime* a, const Lifetime* b) { return key(*a) > key(*b); });
      const int64_t block = Place(order);
      if (best_offsets.empty() || block < best) {  // A block beyond all counting is still placed.
        best = block;
        best_offsets.clear();
        for (const Lifetime& lifetime : lifetimes_) best_offsets.push_back(lifetime.offset);
      }
      if (lifetimes_.size() > kMostTriedOrders) break;
    }
    for (size_t i = 0; i < lifetimes_.size(); ++i) lifetimes_[i].offset = best_offsets[i];
    return best;
  }

  // Each into the smallest gap it fits in between those that may not share its place, or behind them.
  int64_t Place(const std::vector<Lifetime*>& order) const {
    int64_t block = 0;
    std::vector<const Lifetime*> placed;  // Sorted by offset.
    for (Lifetime* lifetime : order) {
      int64_t end_of_used = 0;
      int64_t best_gap = std::numeric_limits<int64_t>::max();
      int64_t place = -1;
      for (const Lifetime* other : placed) {
        if (MayShare(*lifetime, *other)) continue;
        const int64_t gap = other->offset - end_of_used;
        if (gap >= lifetime->bytes && gap < best_gap) {
          best_gap = gap;
          place = end_of_used;
        }
        end_of_used = std::max(end_of_used, EndOf(*other));
      }
      lifetime->offset = place >= 0 ? place : end_of_used;
      block = std::max(block, EndOf(*lifetime));
      placed.insert(
          std::upper_bound(placed.begin(), placed.end(), lifetime,
                           [](const Lifetime* a, const Lifetime* b) { return a->offset < b->offset; }),
          lifetime);
    }
    return block;
  }

  // The most that registers take of the pool of which no two meet: of those that are there at one time, all
  // places differ.
  int64_t MostOfPool() {
    std::sort(lifetimes_.begin(), lifetimes_.end(),
              [](const Lifetime& a, const Lifetime& b) { return EndOf(a) < EndOf(b); });
    std::vector<int64_t> most(lifetimes_.size() + 1, 0);  // Of the first registers.
    for (size_t i = 0; i < lifetimes_.size(); ++i) {
      const auto behind = std::upper_bound(
          lifetimes_.begin(), lifetimes_.begin() + static_cast<std::ptrdiff_t>(i), lifetimes_[i].offset,
          [](int64_t begin, const Lifetime& lifetime) { return begin < EndOf(lifetime); });
      const Register& reg = RegisterOf(lifetimes_[i].id);
      const int64_t bytes = SaturatingProduct(std::max(BlockBytesOf(reg.info), reg.bytes), reg.slots);
      most[i + 1] =
          std::max(most[i], SaturatingSum(most[static_cast<size_t>(behind - lifetimes_.begin())], bytes));
    }
    return most.back();
  }

  // A register's producer waits for the readers of all that had its place before.
  void AddGuards() {
    std::vector<const Lifetime*> by_begin;
    for (const Lifetime& lifetime : lifetimes_) by_begin.push_back(&lifetime);
    std::stable_sort(by_begin.begin(), by_begin.end(),
                     [](const Lifetime* a, const Lifetime* b) { return a->begin < b->begin; });
    size_t next = 0;
    std::vector<const Lifetime*>
        earlier;  // The one that ends last comes first: it implies most of the others.
    for (size_t i = 0; i < size_; ++i) {
      if (!before_.empty()) CollectBefore(i);
      for (; next < by_begin.size() && by_begin[next]->begin == i; ++next) {
        earlier.clear();
        for (const Lifetime& other : lifetimes_)
          if (other.end < i && Meet(other, *by_begin[next])) earlier.push_back(&other);
        std::stable_sort(earlier.begin(), earlier.end(),
                         [](const Lifetime* a, const Lifetime* b) { return a->end > b->end; });
        for (const Lifetime* other : earlier)
          for (const size_t reader : other->last)
            for (const size_t task : by_begin[next]->first) AddGuard(reader, task);
      }
    }
  }

  void AddGuard(size_t from, size_t to) {
    if (IsBefore(from, to)) return;
    const std::vector<RegisterId>& produced = TaskAt(from).produced;
    const auto found =
        std::find_if(produced.begin(), produced.end(), [&](RegisterId id) { return RegisterOf(id).control; });
    RegisterId guard = found == produced.end() ? static_cast<RegisterId>(plan_.registers.size()) : *found;
    if (found == produced.end()) {
      Register reg;
      reg.id = guard;
      reg.producer = TaskAt(from).id;
      reg.control = true;
      plan_.registers.push_back(std::move(reg));
      TaskAt(from).produced.push_back(guard);
    }
    Task& guarded = TaskAt(to);
    if (guarded.kind == TaskKind::kSource && guarded.count > 1) {  // One guard for all of its acts.
      guarded.kind = TaskKind::kUnpack;
      guarded.rate = std::exchange(guarded.count, 1);
    }
    std::vector<TaskId>& consumers = RegisterOf(guard).consumers;
    if (std::find(consumers.begin(), consumers.end(), TaskAt(to).id) == consumers.end()) {
      consumers.push_back(TaskAt(to).id);
      TaskAt(to).control_in.push_back(guard);
    }
    AddBefore(from, to);
  }

  Plan& plan_;
  const Device device_;  // In whose memory the registers are.
  const size_t first_;
  const size_t size_;
  const TaskPlaces position_;  // On this rank.
  static constexpr size_t kNoPass = SIZE_MAX;

  std::vector<PlanPass> passes_;
  std::vector<size_t> pass_of_;  // By task.
  std::vector<Lifetime> lifetimes_;
  std::vector<Bits> before_;  // Empty: not known.
};

// Calls visit(rank, first, last) for each rank that has tasks, which are plan.tasks[first, last).
template <typename Visit>
void ForEachRank(const Plan& plan, const Visit& visit) {
  size_t first = 0;
  while (first < plan.tasks.size()) {
    const uint32_t rank = plan.tasks[first].id.rank();
    size_t last = first;
    while (last < plan.tasks.size() && plan.tasks[last].id.rank() == rank) ++last;
    visit(rank, first, last);
    first = last;
  }
}

}  // namespace

void PlanMemory(Plan* plan) {
  plan->peak_bytes.assign(static_cast<size_t>(plan->ranks), 0);
  plan->pool_bytes = plan->peak_bytes;
  ForEachRank(*plan, [&](uint32_t rank, size_t first, size_t last) {
    std::tie(plan->peak_bytes[rank], plan->pool_bytes[rank]) = RankMemory(*plan, {}, first, last).Run();
  });
  for (const StreamDescription& stream : plan->streams)
    if (!stream.device.IsHost() && stream.kind == StreamKind::kCompute)
      ForEachRank(*plan, [&](uint32_t, size_t first, size_t last) {
        RankMemory(*plan, stream.device, first, last).Run();
      });
}

int64_t PeakOnDevice(const Plan& plan, Device device) {
  Plan planned = plan;  // Its guards are there already.
  int64_t most = 0;
  ForEachRank(plan, [&](uint32_t, size_t first, size_t last) {
    most = std::max(most, RankMemory(planned, device, first, last).Run().first);
  });
  return most;
}

namespace {

// The most bytes of a result whose size only the run tells. Sizes of operands are known.
double MostBytes(const Graph& graph, const Node& node, ValueInfo result) {
  const bool stacks = ops::HasRole(node, ops::Role::kRbind), joins = ops::HasRole(node, ops::Role::kCbind);
  int64_t rows = 0, columns = 0;
  double largest = 0, all = 0;
  for (const NodeId input : node.inputs) {
    if (input == kNoNode || !graph[input].info.IsTabular() || !graph[input].info.IsSized()) continue;
    const ValueInfo& info = graph[input].info;
    rows = stacks ? SaturatingSum(rows, info.shape.rows) : std::max(rows, info.shape.rows);
    columns = joins ? SaturatingSum(columns, info.shape.columns) : std::max(columns, info.shape.columns);
    const auto bytes = static_cast<double>(KnownBytes(info));
    largest = std::max(largest, bytes);
    all += bytes;
  }
  if (result.shape.rows == kUnknown) result.shape.rows = rows;
  if (result.shape.columns == kUnknown) result.shape.columns = columns;
  const auto of_shape = result.IsMatrix() ? static_cast<double>(KnownBytes(result)) : 0.0;
  return std::max(of_shape, stacks || joins ? all : largest);
}

}  // namespace

std::vector<int64_t> MostPoolBytes(const Plan& plan) {
  const auto is_open = [](const ValueInfo& info) { return info.IsTabular() && !info.IsSized(); };
  const auto has_open = [&](const Node& node) {
    const std::span<const ValueInfo> results = ResultsOf(node);
    return std::any_of(results.begin(), results.end(), is_open);
  };
  if (std::none_of(plan.graph.nodes.begin(), plan.graph.nodes.end(), has_open)) return plan.pool_bytes;
  Plan most = plan;
  for (const Task& task : plan.tasks) {
    if (task.node == kNoNode || task.phase == Phase::kPartial) continue;
    const Node& node = plan.graph[task.node];
    const std::span<const ValueInfo> results = ResultsOf(node);
    const bool has_share = task.phase == Phase::kWhole && task.total_rows > 0 && plan.ranks > 1;
    const double share =
        has_share ? static_cast<double>(task.row_end - task.row_begin) / static_cast<double>(task.total_rows)
                  : 1;
    for (size_t i = 0; i < task.produced.size() && i < results.size(); ++i) {
      Register& reg = most.registers[static_cast<size_t>(task.produced[i])];
      if (reg.control || reg.bytes > 0 || !is_open(reg.info) || !is_open(results[i])) continue;
      const double bytes = share * MostBytes(plan.graph, node, results[i]);
      reg.bytes = bytes < kMostOfBlock ? BlockPool::ClassBytes(static_cast<int64_t>(bytes)) : kMostOfBlock;
    }
  }
  // What the plan says beyond its registers of the host is that of a device whose memory is the host's.
  Plan registers = plan;
  PlanMemory(&registers);
  PlanMemory(&most);
  for (size_t rank = 0; rank < most.pool_bytes.size() && rank < plan.pool_bytes.size(); ++rank)
    most.pool_bytes[rank] =
        SaturatingSum(most.pool_bytes[rank], plan.pool_bytes[rank] - registers.pool_bytes[rank]);
  return most.pool_bytes;
}

int64_t BlockBytesOf(const ValueInfo& info) {
  const int64_t bytes = KnownBytes(info);
  if (bytes <= 0 || bytes > kMostOfBlock) return std::max<int64_t>(bytes, 0);
  const int64_t columns = info.IsFrame() ? std::max<int64_t>(1, info.shape.columns) : 1;
  return SaturatingProduct(BlockPool::ClassBytes(CeilDivide(bytes, columns)), columns);
}

namespace {

// Whether the task only brings rows to the operator of its node, or takes them from it.
bool MovesRows(Phase phase) {
  return phase == Phase::kSlice || phase == Phase::kGather || phase == Phase::kShape ||
         phase == Phase::kPanels || phase == Phase::kTransfer;
}

// A task alone holds what it reads, what it makes and what it works with.
Status CheckWorkingMemory(const Plan& plan, const Task& task, int64_t memory_bytes) {
  const double working = WorkingBytesOf(plan, task);
  if (working == 0) return OkStatus();
  const Node& node = plan.graph[task.node];
  std::set<RegisterId> registers(task.consumed.begin(), task.consumed.end());
  registers.insert(task.produced.begin(), task.produced.end());
  double values = 0;
  for (const RegisterId id : registers)
    if (id >= 0 && plan.registers[static_cast<size_t>(id)].device.IsHost())
      values += static_cast<double>(plan.registers[static_cast<size_t>(id)].bytes);
  if (values + working <= static_cast<double>(memory_bytes)) return OkStatus();
  return ResourceExhausted("out of memory: '{}' needs {:.0f} bytes on worker {}, the limit is {} bytes",
                           node.op, values + working, task.id.rank(), memory_bytes)
      .At(node.position)
      .WithNote(fmt::format("{:.0f} bytes of them are its working memory", working))
      .WithNote(std::string(kWaysOutOfMemory));
}

// What takes the most of the memory: the value that a task makes, or puts together for a node.
std::string LargestText(const Register& largest, const Task& task, const Node& node) {
  if (task.phase == Phase::kGather && task.kind == TaskKind::kCompute)
    return fmt::format("largest value: the {} operand of '{}', which needs it whole, {} bytes",
                       largest.info.shape, node.op, largest.bytes);
  return fmt::format("largest value: the {} result of '{}', {} bytes", largest.info.shape, node.op,
                     largest.bytes);
}

}  // namespace

double WorkingBytesOf(const Plan& plan, const Task& task) {
  if (task.node == kNoNode || task.kind == TaskKind::kCopy || MovesRows(task.phase)) return 0;
  if (IsStageInPanels(plan, task)) return 0;  // It is counted with what they hold (HeldOfPanels).
  const Node& node = plan.graph[task.node];
  const std::vector<ValueInfo> inputs = InputInfos(plan.graph, node);
  return ops::WorkingBytesOf(node, inputs);
}

Status CheckMemory(const Plan& plan, int64_t memory_bytes) {
  const int64_t limit = memory_bytes > 0 ? std::min(memory_bytes, kMostCounted) : kMostCounted;
  for (int32_t rank = 0; rank < plan.ranks; ++rank) {
    const int64_t peak = plan.peak_bytes[static_cast<size_t>(rank)];
    if (peak <= limit) continue;
    const Register* largest = nullptr;
    for (const Register& reg : plan.registers)
      if (reg.device.IsHost() && reg.producer.rank() == static_cast<uint32_t>(rank) &&
          (!largest || reg.bytes > largest->bytes))
        largest = &reg;
    const Task* task = nullptr;
    for (const Task& candidate : plan.tasks)
      if (largest && candidate.id == largest->producer) task = &candidate;
    Status status = memory_bytes > 0
                        ? ResourceExhausted(
                              "out of memory: this block needs {} bytes on worker {}, the limit is {} bytes",
                              peak, rank, memory_bytes)
                        : ResourceExhausted("out of memory: this block needs more than {} bytes on worker {}",
                                            limit, rank);
    if (task && task->node != kNoNode) {
      const Node& node = plan.graph[task->node];
      status = status.At(node.position).WithNote(LargestText(*largest, *task, node));
    }
    return status.WithNote(std::string(kWaysOutOfMemory));
  }
  if (memory_bytes <= 0) return OkStatus();
  for (const Task& task : plan.tasks) HEDDLE_RETURN_IF_ERROR(CheckWorkingMemory(plan, task, memory_bytes));
  return OkStatus();
}

}  // namespace heddle::scheduler
