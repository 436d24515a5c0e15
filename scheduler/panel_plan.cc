// SPDX-License-Identifier: Apache-2.0
#include "scheduler/panel_plan.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/programs/task_places.h"
#include "core/values/sizes.h"
#include "ops/base/held_bytes.h"
#include "ops/base/operator.h"
#include "ops/base/split.h"
#include "ops/base/stages.h"
#include "scheduler/panel_lists.h"
#include "scheduler/panel_roles.h"
#include "scheduler/panel_transfers.h"

namespace heddle::scheduler {
namespace {

constexpr int32_t kSlotsOfDisk = 2;

using Content = PanelRoles::Content;

// A pass, and what is written of it.
struct Region {
  const PanelRegion& rows;
  std::vector<Task> starts = {}, acts = {}, ends = {};  // What spreads, what acts, what collects,
  std::vector<Task> after = {};                         // and what reads that and acts once.
  // What spreads a register: its panels, or all of it once a panel.
  std::map<RegisterId, RegisterId> panels_of = {}, repeated = {};
  int64_t panels() const { return rows.panels(); }
};

class RankPanels : private TaskWriter {
 public:
  /// Of tasks [first, last) of the old plan, which are those of a rank.
  RankPanels(const Plan& old, const PanelRoles& roles, size_t first, size_t last, Plan* plan,
             std::map<RegisterId, RegisterId>* replaced, const PanelOptions& options)
      : TaskWriter(std::span(old.tasks).subspan(first, last - first), plan),
        old_(old),
        roles_(roles),
        tasks_(old.tasks),
        first_(first),
        last_(last),
        replaced_(replaced),
        options_(options),
        transfers_(old, roles, this) {
    for (const PanelRegion& rows : roles_.regions()) regions_.push_back({rows});
  }

  std::vector<Task> Run() {
    for (size_t i = first_; i < last_; ++i)
      for (const RegisterId id : tasks_[i].produced)
        if (roles_.IsHandle(id)) {
          plan_.registers[Index(id)].bytes = 0;
          DiskStream();
        }
    int last_pass = 0;
    for (size_t i = first_; i < last_; ++i) last_pass = std::max(last_pass, RoleOf(i).pass);
    for (int pass = 0; pass <= last_pass; ++pass) {
      for (size_t i = first_; i < last_; ++i)
        if (!RoleOf(i).is_panelled && RoleOf(i).pass == pass) AddWhole(i);
      for (Region& region : regions_)
        if (region.rows.pass == pass && region.rows.rank == tasks_[first_].id.rank()) AddRegion(&region);
    }
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

  const TaskRole& RoleOf(size_t task) const { return roles_.roles()[task]; }
  Region& RegionOf(size_t task) { return regions_[RoleOf(task).region]; }
  // The entries of CSR rows, which KnownBytes leaves out; `of` is the register of all rows in the old plan.
  void AddEntries(RegisterId made, RegisterId of, const Region& region) {
    const int64_t bytes = roles_.entries().MostBytes(of, region.rows.height);
    if (bytes != kUnknown) plan_.registers[Index(made)].bytes += bytes;
  }
  static ValueInfo PanelInfo(ValueInfo info, const Region& region) {
    info.shape.rows = std::min(region.rows.height, region.rows.end - region.rows.begin);
    return info;
  }
  void SetPanels(Task* task, const Region& region, int64_t total_rows) {
    task->row_begin = region.rows.begin;
    task->row_end = region.rows.end;
    task->total_rows = total_rows;
    task->panel_rows = region.rows.height;
  }

  // The same of a register, whose rows begin with those of the rank.
  void SetLocalPanels(Task* task, const Region& region) {
    task->row_begin = 0;
    task->row_end = task->total_rows = region.rows.end - region.rows.begin;
    task->panel_rows = region.rows.height;
  }

  // What a panelled register is when its pass is over: a register of a task that collects, made once.
  // `finish` gives the task its input and its output.
  template <typename Finish>
  RegisterId CollectedOf(RegisterId id, TaskKind kind, Phase phase, const Finish& finish) {
    const auto found = handles_.find(id);
    if (found != handles_.end()) return found->second;
    const size_t producer = roles_.ProducerOf(id);
    Region& region = RegionOf(producer);
    Task task = NewTask(kind, phase, tasks_[producer]);
    task.rate = region.panels();
    const RegisterId made = finish(&task, region);
    region.ends.push_back(std::move(task));
    handles_[id] = made;
    return made;
  }
  // The panels of a pass, kept: a handle.
  RegisterId HandleOf(RegisterId id) {
    return CollectedOf(id, TaskKind::kAccumulate, Phase::kPanels, [&](Task* task, const Region& region) {
      PutOnDisk(task);
      SetLocalPanels(task, region);
      Consume(task, id);
      const RegisterId handle = NewRegister(task, old_.registers[Index(id)].info);
      plan_.registers[Index(handle)].bytes = 0;  // Its panels are the store's.
      return handle;
    });
  }
  // The lists of all panels.
  RegisterId ListsOf(RegisterId id) {
    return CollectedOf(id, TaskKind::kPack, Phase::kGather, [&](Task* task, const Region& region) {
      const size_t producer = roles_.ProducerOf(id);
      const std::vector<RegisterId>& produced = tasks_[producer].produced;
      const bool together = RoleOf(producer).rule == ops::RowRule::kReduce;
      const auto result = std::find(produced.begin(), produced.end(), id) - produced.begin();
      return CollectLists(task, region, id, producer, together ? 0 : static_cast<size_t>(result));
    });
  }
  // Nodes of their trees are joined as soon as they are there. Where only the run tells what a list has, the
  // lists of all panels come to be one below the other.
  RegisterId CollectLists(Task* task, const Region& region, RegisterId lists, size_t reduction,
                          size_t result) {
    Consume(task, lists);
    const RegisterId made = NewRegister(task, ValueInfo::OfMatrix({kUnknown, kUnknown}));
    const ops::PayloadUnits units = UnitsOfLists(old_.graph, tasks_[reduction], result);
    task->node = units.count < 2 ? kNoNode : tasks_[reduction].node;
    if (units.count < 2) return made;
    task->kind = TaskKind::kAccumulate;
    task->phase = Phase::kStage;
    task->stage = ops::kStagesOfReduction * static_cast<int32_t>(result) + ops::kJoinParts;
    task->row_end = task->total_rows = units.count;
    const PayloadBytes bytes = PayloadBytesOf(region.rows, RoleOf(reduction).total, units);
    plan_.registers[Index(lists)].bytes = bytes.of_list;
    plan_.registers[Index(made)].bytes = bytes.held;
    return made;
  }
  // That a panelled task has done all its acts.
  RegisterId DoneOf(RegisterId id) {
    if (IsRemote(id) || roles_.ContentOf(id) != Content::kDone) return id;
    return CollectedOf(id, TaskKind::kAccumulate, Phase::kReady, [&](Task* task, const Region&) {
      task->node = kNoNode;
      Await(task, id);
      return NewRegister(task, {}, /*control=*/true);
    });
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

  // Of another rank, which tells what is to be read in its place (TellOtherRanks).
  bool IsRemote(RegisterId id) const {
    return plan_.registers[Index(id)].producer.rank() != tasks_[first_].id.rank();
  }

  // Whether a variable has a value as panels; of one whose size only the run tells, it has.
  bool StaysPanels(const ValueInfo& info) const {
    if (!info.IsSized()) return options_.whole_bytes != std::numeric_limits<int64_t>::max();
    return ops::BytesToMove(info) >= static_cast<double>(options_.whole_bytes);
  }

  // What a task that is not panelled reads in place of a register; `takes_panels`: it reads panels itself.
  RegisterId WholeOf(RegisterId id, const Task& reader, bool takes_panels) {
    if (id == kNone || IsRemote(id)) return id;
    if (roles_.ContentOf(id) == Content::kList) return ListsOf(id);
    const ValueInfo info = old_.registers[Index(id)].info;
    const Node* const node = roles_.NodeOf(reader);
    const bool stays = takes_panels || (node != nullptr && node->Is("assign") && StaysPanels(info));
    if (!roles_.IsHandle(id) && !roles_.IsPanelled(id)) return id;
    const RegisterId handle = KeptOf(id);
    return stays ? handle : GatheredOf(handle, info, reader);
  }

  // Of what is a handle, or one when its pass is over, or when it has come from another rank.
  RegisterId KeptOf(RegisterId id) {
    if (roles_.IsPanelled(id)) return HandleOf(id);
    const auto brought = handles_.find(id);
    return brought == handles_.end() ? id : brought->second;
  }

  // Other ranks get rows of panels in panels, and all else whole.
  void TellOtherRanks(const Task& task) {
    for (const RegisterId id : task.produced) {
      const std::vector<TaskId>& readers = old_.registers[Index(id)].consumers;
      if (std::all_of(readers.begin(), readers.end(),
                      [&](TaskId reader) { return reader.rank() == task.id.rank(); }))
        continue;
      Task reader;
      reader.id = task.id;
      const RegisterId sent = roles_.IsControl(id)    ? DoneOf(id)
                              : roles_.IsInPieces(id) ? Spread(id, task)
                                                      : WholeOf(id, reader, false);
      if (sent != id) (*replaced_)[id] = sent;
    }
  }

  RegisterId Spread(RegisterId id, const Task& maker) {
    Task spread = transfers_.Spread(id, KeptOf(id), maker);
    const RegisterId pieces = spread.produced[0];
    order_.push_back({nullptr, std::move(spread)});
    return pieces;
  }

  // What other ranks have made in the stage before for the panels of this one comes when this rank, too, is
  // through with that stage.
  void BringParts(const Task& stage) {
    std::vector<size_t> copies;
    for (const RegisterId id : stage.consumed)
      if (const size_t copy = roles_.ProducerOf(id);
          copy != TaskPlaces::kNone && RoleOf(copy).brings == TaskRole::Brings::kParts)
        copies.push_back(copy);
    if (!copies.empty()) Bring(copies, stage_done_.at(stage.node));
  }

  void Bring(const std::vector<size_t>& copies, RegisterId after) {
    for (Task& task : transfers_.Bring(copies, after, &handles_))
      order_.push_back({nullptr, std::move(task)});
    for (const size_t copy : copies) TellOtherRanks(tasks_[copy]);
  }

  void AddWhole(size_t i) {
    if (RoleOf(i).brings == TaskRole::Brings::kParts) return;  // Where the stage is that reads it.
    if (RoleOf(i).brings == TaskRole::Brings::kRows) return Bring({i}, kNone);
    BringParts(tasks_[i]);
    Task task = tasks_[i];
    // What reads panels, or makes them, is the processor's.
    const bool has_panels = RoleOf(i).is_lazy || RoleOf(i).takes_panels || RoleOf(i).stages;
    if (has_panels && !task.id.device().IsHost()) TakeOver(&task, NewId(task.id, task.id.stream()));
    task.consumed.clear();
    task.control_in.clear();
    for (size_t input = 0; input < tasks_[i].consumed.size(); ++input)
      Consume(&task, WholeOf(tasks_[i].consumed[input], tasks_[i], roles_.TakesPanels(i, input)));
    for (const RegisterId id : roles_.OrderOf(i)) Await(&task, DoneOf(id));
    const TaskRole& role = RoleOf(i);
    if (role.is_lazy) task.kind = TaskKind::kCompute;
    if (role.is_view && task.phase == Phase::kGather) {  // All rows of what it reads.
      task.phase = Phase::kSlice;
      task.row_end = task.total_rows = old_.registers[Index(task.produced[0])].info.shape.rows;
    }
    const bool is_stage = role.stages && task.phase == Phase::kStage;
    if (!is_stage && has_panels) task.phase = Phase::kPanels;
    if (role.held_bytes > 0) plan_.graph[task.node].SetAttribute(ops::kHeldBytes, Scalar(role.held_bytes));
    if (role.stages) SetStages(*role.stages, task.node, &plan_);
    if (is_stage) stage_done_[task.node] = NewRegister(&task, {}, /*control=*/true);
    order_.push_back({nullptr, std::move(task)});
    TellOtherRanks(tasks_[i]);
  }

  // Panels of a value that the pass does not make: of a whole one, or of a handle.
  RegisterId PanelsIn(Region* region, RegisterId source, RegisterId of, const Task& like) {
    const auto [found, is_new] = region->panels_of.try_emplace(source, kNone);
    if (!is_new) return found->second;
    Task task = NewTask(TaskKind::kUnpack, Phase::kSlice, like);
    task.rate = region->panels();
    SetLocalPanels(&task, *region);
    const bool is_elsewhere = plan_.registers[Index(source)].bytes == 0;
    if (is_elsewhere) PutOnDisk(&task);
    Consume(&task, source);
    found->second = NewRegister(&task, PanelInfo(old_.registers[Index(of)].info, *region));
    AddEntries(found->second, of, *region);
    // One is read while the one before is computed with.
    if (is_elsewhere) plan_.registers[Index(found->second)].slots = kSlotsOfDisk;
    const RegisterId made = found->second;
    region->starts.push_back(std::move(task));
    return made;
  }
  // A whole value, once a panel.
  RegisterId RepeatedIn(Region* region, RegisterId source, const Task& like) {
    const auto [found, is_new] = region->repeated.try_emplace(source, kNone);
    if (!is_new) return found->second;
    Task task = NewTask(TaskKind::kRepeat, Phase::kWhole, like);
    task.node = kNoNode;
    task.rate = region->panels();
    const bool control = plan_.registers[Index(source)].control;
    if (control)
      Await(&task, source);
    else
      Consume(&task, source);
    const ValueInfo info = plan_.registers[Index(source)].info;
    const RegisterId made = NewRegister(&task, info, control);
    if (!control) plan_.registers[Index(made)].bytes = 0;  // The cells are those of `source`.
    found->second = made;
    region->starts.push_back(std::move(task));
    return made;
  }

  void AddRegion(Region* region) {
    for (const size_t i : region->rows.tasks) AddPanelled(region, i);
    order_.push_back({region, {}});
    for (Task& task : region->after) order_.push_back({nullptr, std::move(task)});
    for (const size_t i : region->rows.tasks) TellOtherRanks(tasks_[i]);
  }

  void AddPanelled(Region* region, size_t i) {
    const Task& old = tasks_[i];
    Task task = old;
    task.consumed.clear();
    task.control_in.clear();
    const bool reduces = roles_.Reduces(i);
    SetPanels(&task, *region, RoleOf(i).total);
    if (task.cost_ns > 0) task.cost_ns = std::max<int64_t>(1, task.cost_ns / region->panels());
    if (reduces) task.phase = Phase::kPartial;
    // Without panels among its inputs it makes one at a time from whole ones.
    bool has_panels = false;
    for (size_t input = 0; input < old.consumed.size(); ++input)
      has_panels |= old.consumed[input] != kNone && roles_.ReadsRows(old, input);
    if (!has_panels) {
      task.kind = TaskKind::kUnpack;
      task.rate = region->panels();
      if (ops::FindOperator(old_.graph[old.node].op)->files) PutOnDisk(&task);
      for (const RegisterId id : task.produced) {
        plan_.registers[Index(id)].producer = task.id;
        // Who waits for the order alone must not keep it from making the next panel either.
        if (task.id != old.id) plan_.registers[Index(id)].slots = kSlotsOfDisk;
      }
    } else {
      task.kind = RoleOf(i).appends ? TaskKind::kAccumulate : TaskKind::kCompute;
      task.rate = RoleOf(i).appends ? region->panels() : task.rate;
    }
    for (size_t input = 0; input < old.consumed.size(); ++input)
      Consume(&task, PanelledInput(region, old, input, has_panels));
    for (const RegisterId id : roles_.OrderOf(i)) {
      const bool by_acts = roles_.AwaitsActs(i, id);
      RegisterId source = by_acts ? id : DoneOf(id);
      if (has_panels && !by_acts) source = RepeatedIn(region, source, old);
      Await(&task, source);
    }
    if (!has_panels && task.consumed.empty() && task.control_in.empty()) {
      task.kind = TaskKind::kSource;
      task.rate = 1;
      task.count = region->panels();
    }
    for (const RegisterId id : task.produced) {
      Register& reg = plan_.registers[Index(id)];
      if (!roles_.IsPanelled(id)) continue;
      reg.info = PanelInfo(reg.info, *region);
      reg.bytes = KnownBytes(reg.info);
      AddEntries(id, id, *region);
    }
    if (reduces && old.phase == Phase::kWhole) AddFinish(region, i, &task);
    const bool starts = task.kind == TaskKind::kUnpack || task.kind == TaskKind::kSource;
    (starts ? region->starts : RoleOf(i).appends ? region->ends : region->acts).push_back(std::move(task));
  }

  RegisterId PanelledInput(Region* region, const Task& old, size_t input, bool has_panels) {
    const RegisterId id = old.consumed[input];
    if (id == kNone) return id;
    if (!roles_.ReadsRows(old, input)) {
      const RegisterId source = WholeOf(id, old, false);
      return has_panels ? RepeatedIn(region, source, old) : source;
    }
    if (roles_.IsPanelled(id) && &RegionOf(roles_.ProducerOf(id)) == region) return id;
    return PanelsIn(region, KeptOf(id), id, old);
  }

  // A reduction that was whole gets "finish", which has its registers.
  void AddFinish(Region* region, size_t i, Task* partial) {
    const Node& node = old_.graph[tasks_[i].node];
    const ops::Operator& op = *ops::FindOperator(node.op);
    const std::vector<RegisterId> produced = std::exchange(partial->produced, {});
    Task finish = NewTask(TaskKind::kCompute, Phase::kFinish, tasks_[i]);
    finish.total_rows = finish.row_end = RoleOf(i).total;
    const bool together = RoleOf(i).rule == ops::RowRule::kReduce;
    std::vector<std::pair<RegisterId, size_t>> lists;  // Of which result.
    const auto add_list = [&](size_t result) {
      lists.emplace_back(NewRegister(partial, ValueInfo::OfMatrix({kUnknown, kUnknown})), result);
    };
    if (together) add_list(0);
    size_t result = 0;
    for (const RegisterId id : produced) {
      const bool control = plan_.registers[Index(id)].control;
      const bool reduced = !control && (together || op.reduces(node, result));
      if (!control && !together && reduced) add_list(result);
      if (control || reduced) {
        plan_.registers[Index(id)].producer = finish.id;
        finish.produced.push_back(id);
      } else {
        partial->produced.push_back(id);
      }
      result += !control;
    }
    for (const auto& [list, of] : lists) {
      Task collect = NewTask(TaskKind::kPack, Phase::kGather, tasks_[i]);
      collect.rate = region->panels();
      Consume(&finish, CollectLists(&collect, *region, list, i, of));
      region->ends.push_back(std::move(collect));
    }
    region->after.push_back(std::move(finish));
  }

  void Flush(Region& region) {
    for (std::vector<Task>* tasks : {&region.starts, &region.acts, &region.ends})
      for (Task& task : *tasks) result_.push_back(std::move(task));
  }

  const Plan& old_;
  const PanelRoles& roles_;
  const std::vector<Task>& tasks_;
  const size_t first_, last_;
  std::map<RegisterId, RegisterId>* const replaced_;
  const PanelOptions& options_;
  PanelTransfers transfers_;
  std::deque<Region> regions_;
  std::map<RegisterId, RegisterId> handles_;  // What a panelled register is when its pass is over.
  std::map<NodeId, RegisterId> stage_done_;   // Of a node that is computed in stages: of the last one so far.
  std::map<RegisterId, RegisterId> gathered_;
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
  const PanelRoles roles(plan, options);
  for (size_t first = 0; first < plan.tasks.size();) {
    size_t last = first;
    const uint32_t rank = plan.tasks[first].id.rank();
    while (last < plan.tasks.size() && plan.tasks[last].id.rank() == rank) ++last;
    std::vector<Task> tasks = RankPanels(plan, roles, first, last, &result, &replaced, options).Run();
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
