// SPDX-License-Identifier: Apache-2.0
#include "scheduler/panel_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "core/programs/task_places.h"
#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/operator.h"
#include "ops/base/split.h"

namespace heddle::scheduler {
namespace {

constexpr RegisterId kNone = -1;
constexpr int32_t kSlotsOfDisk = 2;

// What the plan does with one task.
struct TaskRole {
  bool is_panelled = false;  // It acts once a panel.
  bool is_lazy = false;      // It makes a handle to rows that are made when they are read.
  ops::RowRule rule = ops::RowRule::kWhole;
  int64_t begin = 0, end = 0;  // Its rows, all panels together.
  int pass = 0;       // Of a panelled task: the level of its pass. Else that of the passes before it.
  size_t region = 0;  // Of a panelled task: its pass.
};

// The panelled tasks that act in turns, panel by panel.
struct Region {
  int pass = 0;
  int64_t begin = 0, end = 0;
  int64_t height = 0;  // Rows of a panel.
  std::vector<size_t> tasks;
  std::vector<Task> starts, acts, ends;  // What is written: what spreads, what acts, what collects,
  std::vector<Task> after;               // and what reads that and acts once.
  int64_t panels() const { return CeilDivide(end - begin, height); }
};

class RankPanels {
 public:
  RankPanels(const Plan& old, Plan* plan, std::map<RegisterId, RegisterId>* replaced,
             std::span<const Task> tasks, const PanelOptions& options)
      : old_(old),
        plan_(*plan),
        replaced_(replaced),
        tasks_(tasks),
        options_(options),
        places_(tasks),
        roles_(tasks.size()) {
    for (const Task& task : tasks_) {
      uint32_t& next = next_index_[task.id.stream()];
      next = std::max(next, task.id.index() + 1);
    }
  }

  std::vector<Task> Run() {
    for (size_t i = 0; i < tasks_.size(); ++i) FindRole(i);
    for (size_t i = 0; i < tasks_.size(); ++i) FindPass(i);
    for (size_t i = tasks_.size(); i-- > 0;) Postpone(i);
    for (size_t i = 0; i < tasks_.size(); ++i) FindPassOfWhole(i);
    FindRegions();
    for (size_t i = 0; i < tasks_.size(); ++i) MakeAtOnce(i);
    for (Region& region : regions_) ChooseHeight(&region);
    for (const Task& task : tasks_)
      for (const RegisterId id : task.produced)
        if (IsHandle(id)) plan_.registers[Index(id)].bytes = 0;
    int last = 0;
    for (const TaskRole& role : roles_) last = std::max(last, role.pass);
    for (int pass = 0; pass <= last; ++pass) {
      for (size_t i = 0; i < tasks_.size(); ++i)
        if (!roles_[i].is_panelled && roles_[i].pass == pass) AddWhole(i);
      for (Region& region : regions_)
        if (region.pass == pass) AddRegion(&region);
    }
    for (const Task& task : tasks_) TellOtherRanks(task);
    // Rows that a later pass reads have been collected at the end of the pass that makes them.
    for (Item& item : order_)
      if (item.region != nullptr)
        Flush(*item.region);
      else
        result_.push_back(std::move(item.task));
    return std::move(result_);
  }

 private:
  struct Item {
    Region* region = nullptr;
    Task task;
  };

  static size_t Index(RegisterId id) { return static_cast<size_t>(id); }
  const Node* NodeOf(const Task& task) const {
    return task.node == kNoNode ? nullptr : &old_.graph[task.node];
  }
  const ValueInfo& InfoOf(RegisterId id) const { return plan_.registers[Index(id)].info; }
  // The task of the old plan, of this rank, that makes a register; kNone of another rank's, and of new ones.
  size_t ProducerOf(RegisterId id) const {
    return Index(id) < old_.registers.size() ? places_.Of(old_.registers[Index(id)].producer)
                                             : TaskPlaces::kNone;
  }
  bool IsControl(RegisterId id) const { return plan_.registers[Index(id)].control; }
  bool Reduces(size_t i) const {
    return roles_[i].rule == ops::RowRule::kReduce || roles_[i].rule == ops::RowRule::kMixed;
  }

  // What a register of the old plan is in the new one.
  enum class Content : uint8_t {
    kWhole,   // What it was.
    kRows,    // Of a panel each.
    kList,    // A list of tree nodes of each panel.
    kResult,  // Of a reduction: whole, when its pass is over.
    kDone,    // Control, of each act.
  };
  Content ContentOf(RegisterId id) const {
    const size_t producer = id == kNone ? TaskPlaces::kNone : ProducerOf(id);
    if (producer == TaskPlaces::kNone || !roles_[producer].is_panelled) return Content::kWhole;
    const Task& task = tasks_[producer];
    const bool finishes = Reduces(producer) && task.phase == Phase::kWhole;
    if (IsControl(id)) return finishes ? Content::kResult : Content::kDone;
    if (!Reduces(producer) || !IsReduced(task, id)) return Content::kRows;
    return finishes ? Content::kResult : Content::kList;
  }
  bool IsReduced(const Task& task, RegisterId id) const {
    const Node& node = old_.graph[task.node];
    if (roles_[places_.Of(task.id)].rule == ops::RowRule::kReduce) return true;
    const auto at = std::find(task.produced.begin(), task.produced.end(), id) - task.produced.begin();
    return ops::FindOperator(node.op)->reduces(node, static_cast<size_t>(at));
  }
  bool IsPanelled(RegisterId id) const { return ContentOf(id) == Content::kRows; }
  // A live-in that is there as panels, or rows that can be made at any time.
  bool IsHandle(RegisterId id) const {
    const size_t producer = ProducerOf(id);
    if (producer == TaskPlaces::kNone) return false;
    if (roles_[producer].is_lazy) return !IsControl(id);
    const Node* const node = NodeOf(tasks_[producer]);
    return node != nullptr && node->Is("variable") && tasks_[producer].kind == TaskKind::kSource &&
           options_.panelled.contains(node->Text("name"));
  }
  bool IsLarge(const ValueInfo& info) const {
    return info.IsTabular() && info.IsSized() &&
           ops::BytesToMove(info) >= static_cast<double>(options_.least_bytes) &&
           info.shape.rows > Granule(info.shape.rows);
  }
  std::vector<ValueInfo> InfosOf(const Node& node) const {
    std::vector<ValueInfo> infos;
    for (const NodeId input : node.inputs)
      infos.push_back(input == kNoNode ? ValueInfo() : old_.graph[input].info);
    return infos;
  }
  // Whether a task reads this input row by row.
  bool ReadsRows(const Task& task, size_t i) const {
    const Node& node = old_.graph[task.node];
    return i < node.inputs.size() &&
           ops::InputUseOf(node, InfosOf(node), static_cast<int>(i)) == ops::InputUse::kRows;
  }

  // Whether the task reads rows from a handle as it needs them.
  bool TakesPanels(const Task& task) const {
    if (task.phase == Phase::kShape) return task.kind == TaskKind::kCompute;
    const Node* const node = NodeOf(task);
    return node != nullptr && task.phase == Phase::kWhole && ops::HasRole(*node, ops::Role::kWrite);
  }

  void FindRole(size_t i) {
    const Task& task = tasks_[i];
    TaskRole& role = roles_[i];
    const Node* const node = NodeOf(task);
    if (node == nullptr || task.axis != Axis::kRows || task.row_end <= task.row_begin) return;
    const bool computes = task.kind == TaskKind::kCompute || task.kind == TaskKind::kSource;
    if (!computes || (task.phase != Phase::kWhole && task.phase != Phase::kPartial)) return;
    const ops::Operator* const op = ops::FindOperator(node->op);
    if (op == nullptr || op->effect) return;
    const std::vector<ValueInfo> infos = InfosOf(*node);
    const ops::RowRule rule = ops::RowRuleOf(*node, infos);
    bool wanted = false;
    for (size_t input = 0; input < task.consumed.size(); ++input) {
      const RegisterId id = task.consumed[input];
      if (id == kNone || !ReadsRows(task, input)) continue;
      wanted |= IsPanelled(id) || IsHandle(id) || IsLarge(InfoOf(id));
    }
    if (rule == ops::RowRule::kRowWise || rule == ops::RowRule::kGenerate)
      for (const RegisterId id : task.produced)
        wanted |= !plan_.registers[Index(id)].control && IsLarge(InfoOf(id));
    if (!wanted || rule == ops::RowRule::kWhole) return;
    const bool is_lazy = rule == ops::RowRule::kGenerate;
    role = {.is_panelled = !is_lazy,
            .is_lazy = is_lazy,
            .rule = rule,
            .begin = task.row_begin,
            .end = task.row_end};
  }

  // Rows that one pass alone reads are made there.
  void MakeAtOnce(size_t i) {
    if (!roles_[i].is_lazy) return;
    std::optional<size_t> region;
    for (const RegisterId id : tasks_[i].produced) {
      if (IsControl(id)) continue;
      for (const TaskId reader : old_.registers[Index(id)].consumers) {
        const size_t at = places_.Of(reader);
        if (at == TaskPlaces::kNone || !roles_[at].is_panelled || !SameRows(roles_[i], roles_[at])) return;
        for (size_t input = 0; input < tasks_[at].consumed.size(); ++input)
          if (tasks_[at].consumed[input] == id && !ReadsRows(tasks_[at], input)) return;
        if (region && *region != roles_[at].region) return;
        region = roles_[at].region;
      }
    }
    if (!region) return;
    roles_[i].is_lazy = false;
    roles_[i].is_panelled = true;
    roles_[i].region = *region;
    roles_[i].pass = regions_[*region].pass;
    regions_[*region].tasks.insert(regions_[*region].tasks.begin(), i);
  }

  template <typename Visit>
  void ForInputs(size_t i, const Visit& visit) const {
    for (const RegisterId id : tasks_[i].consumed)
      if (id != kNone && ProducerOf(id) != TaskPlaces::kNone) visit(id, ProducerOf(id));
    for (const RegisterId id : tasks_[i].control_in)
      if (ProducerOf(id) != TaskPlaces::kNone) visit(id, ProducerOf(id));
  }

  // What comes of all panels is there when their pass is over.
  void FindPass(size_t i) {
    ForInputs(i, [&](RegisterId id, size_t producer) {
      const TaskRole& maker = roles_[producer];
      const bool same_pass = roles_[i].is_panelled && IsPanelled(id) && SameRows(roles_[i], maker);
      roles_[i].pass = std::max(roles_[i].pass, maker.pass + (maker.is_panelled && !same_pass ? 1 : 0));
    });
  }
  static bool SameRows(const TaskRole& a, const TaskRole& b) { return a.begin == b.begin && a.end == b.end; }

  // A task whose rows only later passes read acts in the first of these, so that its rows need not be kept.
  void Postpone(size_t i) {
    if (!roles_[i].is_panelled) return;
    const Node& node = old_.graph[tasks_[i].node];
    const ops::Operator& op = *ops::FindOperator(node.op);
    if (op.may_fail || Reduces(i)) return;
    int first = INT32_MAX;
    for (const RegisterId id : tasks_[i].produced) {
      if (IsControl(id)) return;
      for (const TaskId reader : old_.registers[Index(id)].consumers) {
        const size_t at = places_.Of(reader);
        if (at == TaskPlaces::kNone || !roles_[at].is_panelled || !SameRows(roles_[i], roles_[at])) return;
        first = std::min(first, roles_[at].pass);
      }
    }
    if (first != INT32_MAX) roles_[i].pass = std::max(roles_[i].pass, first);
  }

  void FindPassOfWhole(size_t i) {
    if (!roles_[i].is_panelled) FindPass(i);
  }

  // Panelled tasks of one pass are together where one reads what another makes, and where they read rows of
  // the same value.
  void FindRegions() {
    std::vector<size_t> parent(tasks_.size());
    std::iota(parent.begin(), parent.end(), size_t{0});
    const auto find = [&](size_t i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    std::map<std::pair<RegisterId, int>, size_t> first_reader;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (!roles_[i].is_panelled) continue;
      for (size_t input = 0; input < tasks_[i].consumed.size(); ++input) {
        const RegisterId id = tasks_[i].consumed[input];
        if (id == kNone || !ReadsRows(tasks_[i], input)) continue;
        const size_t producer = ProducerOf(id);
        const bool together = IsPanelled(id) && roles_[producer].pass == roles_[i].pass &&
                              SameRows(roles_[producer], roles_[i]);
        if (together) {
          parent[find(i)] = find(producer);
          continue;
        }
        const auto [found, is_first] = first_reader.try_emplace({id, roles_[i].pass}, i);
        if (!is_first && SameRows(roles_[found->second], roles_[i])) parent[find(i)] = find(found->second);
      }
    }
    std::map<size_t, size_t> region_of;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (!roles_[i].is_panelled) continue;
      const auto [found, is_new] = region_of.try_emplace(find(i), regions_.size());
      if (is_new) {
        regions_.emplace_back();
        regions_.back().pass = roles_[i].pass;
        regions_.back().begin = roles_[i].begin;
        regions_.back().end = roles_[i].end;
      }
      roles_[i].region = found->second;
      regions_[found->second].tasks.push_back(i);
    }
  }

  // As many rows as the panels of the pass may take, in granules; a power of two of them, so that panels are
  // few nodes of a reduction's tree.
  void ChooseHeight(Region* region) const {
    double row_bytes = 0;
    int64_t total = region->end;
    const auto add = [&](RegisterId id) {
      if (id == kNone || IsControl(id)) return;
      const Content content = ContentOf(id);
      if (content == Content::kList || content == Content::kResult) return;
      const ValueInfo& info = InfoOf(id);
      if (info.IsTabular() && info.IsSized() && info.shape.rows > 0)
        row_bytes += ops::BytesToMove(info) / static_cast<double>(info.shape.rows);
    };
    for (const size_t i : region->tasks) {
      total = std::max(total, tasks_[i].total_rows);
      for (const RegisterId id : tasks_[i].produced) add(id);
      for (size_t input = 0; input < tasks_[i].consumed.size(); ++input)
        if (!IsPanelled(tasks_[i].consumed[input]) && ReadsRows(tasks_[i], input))
          add(tasks_[i].consumed[input]);
    }
    const int64_t granule = Granule(total);
    const double rows = static_cast<double>(options_.pass_bytes) / std::max(row_bytes, 1.0);
    const auto granules = static_cast<int64_t>(std::clamp(rows / static_cast<double>(granule), 1.0,
                                                          static_cast<double>(CeilDivide(total, granule))));
    region->height = FloorPowerOfTwo(granules) * granule;
  }

  // ---- Writing.
  TaskId NewId(TaskId like, uint32_t stream) {
    return TaskId::Make(like.rank(), like.device(), stream, next_index_[stream]++);
  }
  // What waits for files acts beside what computes.
  void PutOnDisk(Task* task) {
    const auto is_disk = [](const StreamDescription& stream) { return stream.kind == StreamKind::kDisk; };
    auto found = std::find_if(plan_.streams.begin(), plan_.streams.end(), is_disk);
    if (found == plan_.streams.end())
      found = plan_.streams.insert(found,
                                   {.kind = StreamKind::kDisk, .name = std::string(Name(StreamKind::kDisk))});
    task->id = NewId(task->id, static_cast<uint32_t>(found - plan_.streams.begin()));
  }
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
  static ValueInfo PanelInfo(ValueInfo info, const Region& region) {
    info.shape.rows = std::min(region.height, region.end - region.begin);
    return info;
  }
  void SetPanels(Task* task, const Region& region, int64_t total_rows) {
    task->row_begin = region.begin;
    task->row_end = region.end;
    task->total_rows = total_rows;
    task->panel_rows = region.height;
  }

  // The panels of a pass, kept: a handle, at the end of the pass.
  RegisterId HandleOf(RegisterId id) {
    const auto found = handles_.find(id);
    if (found != handles_.end()) return found->second;
    const size_t producer = ProducerOf(id);
    Region& region = regions_[roles_[producer].region];
    Task task = NewTask(TaskKind::kAccumulate, Phase::kPanels, tasks_[producer]);
    PutOnDisk(&task);
    task.rate = region.panels();
    SetPanels(&task, region, region.end - region.begin);
    Consume(&task, id);
    ValueInfo info = old_.registers[Index(id)].info;
    const RegisterId handle = NewRegister(&task, info);
    plan_.registers[Index(handle)].bytes = 0;  // Its panels are the store's.
    region.ends.push_back(std::move(task));
    handles_[id] = handle;
    return handle;
  }

  // The value in memory, from a handle.
  RegisterId GatheredOf(RegisterId handle, const ValueInfo& info, const Task& like) {
    const auto found = gathered_.find(handle);
    if (found != gathered_.end()) return found->second;
    Task task = NewTask(TaskKind::kCompute, Phase::kGather, like);
    Consume(&task, handle);
    const RegisterId whole = NewRegister(&task, info);
    gathered_[handle] = whole;
    order_.push_back({nullptr, std::move(task)});
    return whole;
  }

  // The lists of all panels, one below the other.
  RegisterId PackedOf(RegisterId id) {
    const auto found = handles_.find(id);
    if (found != handles_.end()) return found->second;
    const size_t producer = ProducerOf(id);
    Region& region = regions_[roles_[producer].region];
    Task task = NewTask(TaskKind::kPack, Phase::kGather, tasks_[producer]);
    task.node = kNoNode;
    task.rate = region.panels();
    Consume(&task, id);
    const RegisterId packed = NewRegister(&task, ValueInfo::OfMatrix({kUnknown, kUnknown}));
    region.ends.push_back(std::move(task));
    handles_[id] = packed;
    return packed;
  }

  // That a panelled task has done all its acts.
  RegisterId DoneOf(RegisterId id) {
    if (ContentOf(id) != Content::kDone) return id;
    const auto found = handles_.find(id);
    if (found != handles_.end()) return found->second;
    const size_t producer = ProducerOf(id);
    Region& region = regions_[roles_[producer].region];
    Task task = NewTask(TaskKind::kAccumulate, Phase::kReady, tasks_[producer]);
    task.node = kNoNode;
    task.rate = region.panels();
    Await(&task, id);
    const RegisterId done = NewRegister(&task, {}, /*control=*/true);
    region.ends.push_back(std::move(task));
    handles_[id] = done;
    return done;
  }

  // What a task that is not panelled reads in place of a register.
  RegisterId WholeOf(RegisterId id, const Task& reader) {
    if (id == kNone) return id;
    if (ContentOf(id) == Content::kList) return PackedOf(id);
    const ValueInfo info = old_.registers[Index(id)].info;
    const Node* const node = NodeOf(reader);
    const bool is_kept = node != nullptr && node->Is("assign") &&
                         ops::BytesToMove(info) >= static_cast<double>(options_.whole_bytes);
    const bool stays = is_kept || TakesPanels(reader);
    if (IsHandle(id)) return stays ? id : GatheredOf(id, info, reader);
    if (!IsPanelled(id)) return id;
    const RegisterId handle = HandleOf(id);
    return stays ? handle : GatheredOf(handle, info, reader);
  }

  // Other ranks get what they read whole.
  void TellOtherRanks(const Task& task) {
    for (const RegisterId id : task.produced) {
      const std::vector<TaskId>& readers = old_.registers[Index(id)].consumers;
      if (std::all_of(readers.begin(), readers.end(),
                      [&](TaskId reader) { return reader.rank() == task.id.rank(); }))
        continue;
      Task reader;
      reader.id = task.id;
      const RegisterId whole = IsControl(id) ? DoneOf(id) : WholeOf(id, reader);
      if (whole != id) (*replaced_)[id] = whole;
    }
  }

  void AddWhole(size_t i) {
    Task task = tasks_[i];
    task.consumed.clear();
    task.control_in.clear();
    for (const RegisterId id : tasks_[i].consumed) Consume(&task, WholeOf(id, tasks_[i]));
    for (const RegisterId id : tasks_[i].control_in) Await(&task, DoneOf(id));
    if (roles_[i].is_lazy) {
      task.kind = TaskKind::kCompute;
      task.phase = Phase::kPanels;
    }
    order_.push_back({nullptr, std::move(task)});
  }

  // Panels of a value that the pass does not make: of a whole one, or of a handle.
  RegisterId PanelsIn(Region* region, RegisterId source, const ValueInfo& whole, const Task& like) {
    const auto [found, is_new] = spread_.try_emplace({region->tasks[0], source, true}, kNone);
    if (!is_new) return found->second;
    Task task = NewTask(TaskKind::kUnpack, Phase::kSlice, like);
    task.rate = region->panels();
    // The rows of a register begin with those of the rank.
    task.row_begin = 0;
    task.row_end = task.total_rows = region->end - region->begin;
    task.panel_rows = region->height;
    const bool is_elsewhere = plan_.registers[Index(source)].bytes == 0;
    if (is_elsewhere) PutOnDisk(&task);
    Consume(&task, source);
    found->second = NewRegister(&task, PanelInfo(whole, *region));
    // One is read while the one before is computed with.
    if (is_elsewhere) plan_.registers[Index(found->second)].slots = kSlotsOfDisk;
    const RegisterId made = found->second;
    region->starts.push_back(std::move(task));
    return made;
  }
  // A whole value, once a panel.
  RegisterId RepeatedIn(Region* region, RegisterId source, const Task& like) {
    const auto [found, is_new] = spread_.try_emplace({region->tasks[0], source, false}, kNone);
    if (!is_new) return found->second;
    Task task = NewTask(TaskKind::kRepeat, Phase::kWhole, like);
    task.node = kNoNode;
    task.rate = region->panels();
    const bool control = plan_.registers[Index(source)].control;
    if (control)
      Await(&task, source);
    else
      Consume(&task, source);
    const ValueInfo info = InfoOf(source);
    const RegisterId made = NewRegister(&task, info, control);
    if (!control) plan_.registers[Index(made)].bytes = 0;  // The cells are those of `source`.
    found->second = made;
    region->starts.push_back(std::move(task));
    return made;
  }

  void AddRegion(Region* region) {
    for (const size_t i : region->tasks) AddPanelled(region, i);
    order_.push_back({region, {}});
    for (Task& task : region->after) order_.push_back({nullptr, std::move(task)});
  }

  void AddPanelled(Region* region, size_t i) {
    const Task& old = tasks_[i];
    Task task = old;
    task.consumed.clear();
    task.control_in.clear();
    const bool reduces = Reduces(i);
    SetPanels(&task, *region, old.total_rows);
    if (task.cost_ns > 0) task.cost_ns = std::max<int64_t>(1, task.cost_ns / region->panels());
    if (reduces) task.phase = Phase::kPartial;
    // Without panels among its inputs it makes one at a time from whole ones.
    bool has_panels = false;
    for (size_t input = 0; input < old.consumed.size(); ++input)
      has_panels |= old.consumed[input] != kNone && ReadsRows(old, input);
    if (!has_panels) {
      task.kind = TaskKind::kUnpack;
      task.rate = region->panels();
      if (ops::FindOperator(old_.graph[old.node].op)->files) PutOnDisk(&task);
      for (const RegisterId id : task.produced) {
        plan_.registers[Index(id)].producer = task.id;
        if (task.id != old.id && !IsControl(id)) plan_.registers[Index(id)].slots = kSlotsOfDisk;
      }
    } else {
      task.kind = TaskKind::kCompute;
    }
    for (size_t input = 0; input < old.consumed.size(); ++input)
      Consume(&task, PanelledInput(region, old, input, has_panels));
    for (const RegisterId id : old.control_in) {
      RegisterId source = DoneOf(id);
      if (has_panels) source = RepeatedIn(region, source, old);
      Await(&task, source);
    }
    if (!has_panels && task.consumed.empty() && task.control_in.empty()) {
      task.kind = TaskKind::kSource;
      task.rate = 1;
      task.count = region->panels();
    }
    for (const RegisterId id : task.produced) {
      Register& reg = plan_.registers[Index(id)];
      if (!IsPanelled(id)) continue;
      reg.info = PanelInfo(reg.info, *region);
      reg.bytes = KnownBytes(reg.info);
    }
    if (reduces && old.phase == Phase::kWhole) AddFinish(region, i, &task);
    (task.kind == TaskKind::kUnpack || task.kind == TaskKind::kSource ? region->starts : region->acts)
        .push_back(std::move(task));
  }

  RegisterId PanelledInput(Region* region, const Task& old, size_t input, bool has_panels) {
    const RegisterId id = old.consumed[input];
    if (id == kNone) return id;
    const ValueInfo whole = old_.registers[Index(id)].info;
    if (!ReadsRows(old, input)) {
      const RegisterId source = WholeOf(id, old);
      return has_panels ? RepeatedIn(region, source, old) : source;
    }
    if (!IsPanelled(id)) return PanelsIn(region, id, whole, old);
    const size_t producer = ProducerOf(id);
    if (roles_[producer].region == static_cast<size_t>(region - regions_.data())) return id;
    return PanelsIn(region, HandleOf(id), whole, old);
  }

  // A reduction that was whole gets "finish", which has its registers.
  void AddFinish(Region* region, size_t i, Task* partial) {
    const Node& node = old_.graph[tasks_[i].node];
    const ops::Operator& op = *ops::FindOperator(node.op);
    const std::vector<RegisterId> produced = std::exchange(partial->produced, {});
    Task finish = NewTask(TaskKind::kCompute, Phase::kFinish, tasks_[i]);
    finish.total_rows = finish.row_end = tasks_[i].total_rows;
    const bool together = roles_[i].rule == ops::RowRule::kReduce;
    std::vector<RegisterId> lists;
    if (together) lists.push_back(NewRegister(partial, ValueInfo::OfMatrix({kUnknown, kUnknown})));
    size_t result = 0;
    for (const RegisterId id : produced) {
      const bool control = plan_.registers[Index(id)].control;
      const bool reduced = !control && (together || op.reduces(node, result));
      if (!control && !together && reduced)
        lists.push_back(NewRegister(partial, ValueInfo::OfMatrix({kUnknown, kUnknown})));
      if (control || reduced) {
        plan_.registers[Index(id)].producer = finish.id;
        finish.produced.push_back(id);
      } else {
        partial->produced.push_back(id);
      }
      result += !control;
    }
    for (const RegisterId list : lists) {
      Task pack = NewTask(TaskKind::kPack, Phase::kGather, tasks_[i]);
      pack.node = kNoNode;
      pack.rate = region->panels();
      Consume(&pack, list);
      Consume(&finish, NewRegister(&pack, ValueInfo::OfMatrix({kUnknown, kUnknown})));
      region->ends.push_back(std::move(pack));
    }
    region->after.push_back(std::move(finish));
  }

  void Flush(Region& region) {
    for (std::vector<Task>* tasks : {&region.starts, &region.acts, &region.ends})
      for (Task& task : *tasks) result_.push_back(std::move(task));
  }

  const Plan& old_;
  Plan& plan_;
  std::map<RegisterId, RegisterId>* const replaced_;
  std::span<const Task> tasks_;
  const PanelOptions& options_;
  const TaskPlaces places_;
  std::vector<TaskRole> roles_;
  std::vector<Region> regions_;
  std::map<uint32_t, uint32_t> next_index_;   // By stream.
  std::map<RegisterId, RegisterId> handles_;  // What a panelled register is when its pass is over.
  std::map<RegisterId, RegisterId> gathered_;
  std::map<std::tuple<size_t, RegisterId, bool>, RegisterId> spread_;
  std::vector<Item> order_;
  std::vector<Task> result_;
};

}  // namespace

Plan InPanels(const Plan& plan, const PanelOptions& options) {
  Plan result = plan;
  result.tasks.clear();
  // Registers get their consumers anew, as tasks are written.
  for (Register& reg : result.registers) reg.consumers.clear();
  std::map<RegisterId, RegisterId> replaced;
  for (size_t first = 0; first < plan.tasks.size();) {
    size_t last = first;
    const uint32_t rank = plan.tasks[first].id.rank();
    while (last < plan.tasks.size() && plan.tasks[last].id.rank() == rank) ++last;
    std::vector<Task> tasks =
        RankPanels(plan, &result, &replaced, std::span(plan.tasks).subspan(first, last - first), options)
            .Run();
    for (Task& task : tasks) result.tasks.push_back(std::move(task));
    first = last;
  }
  const auto replace = [&](const Task& task, RegisterId* id) {
    const auto found = replaced.find(*id);
    if (found == replaced.end()) return;
    Register& before = result.registers[static_cast<size_t>(*id)];
    if (before.producer.rank() == task.id.rank()) return;
    std::erase(before.consumers, task.id);
    *id = found->second;
    result.registers[static_cast<size_t>(*id)].consumers.push_back(task.id);
  };
  for (Task& task : result.tasks) {
    for (RegisterId& id : task.consumed) replace(task, &id);
    for (RegisterId& id : task.control_in) replace(task, &id);
  }
  return result;
}

}  // namespace heddle::scheduler
