// SPDX-License-Identifier: Apache-2.0
#include "scheduler/panel_roles.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "core/programs/input_infos.h"
#include "core/values/sizes.h"
#include "ops/base/held_bytes.h"
#include "ops/base/split.h"
#include "ops/base/stages.h"
#include "ops/panels/staged_run.h"

namespace heddle::scheduler {
namespace {

constexpr RegisterId kNone = -1;
constexpr int64_t kLeastHeldOfBlocks = 64 << 10;  // Or of rows that a write reads.

bool SameRows(const TaskRole& a, const TaskRole& b) { return a.begin == b.begin && a.end == b.end; }

}  // namespace

PanelRoles::PanelRoles(const Plan& plan, const PanelOptions& options)
    : plan_(plan),
      tasks_(plan.tasks),
      options_(options),
      places_(plan.tasks),
      entries_(plan, options.most_entries),
      roles_(plan.tasks.size()) {
  FindStagesOfRanks();
  // Tasks of a rank come after what they read on it, but those of other ranks may stand behind them.
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (HasRole(i)) continue;
      FindRole(i);
      goes_on |= HasRole(i) && plan_.ranks > 1;
    }
  }
  FindPasses();
  for (size_t i = tasks_.size(); i-- > 0;) Postpone(i);
  FindPasses();
  FindRegions();
  for (size_t i = 0; i < tasks_.size(); ++i) MakeAtOnce(i);
  for (PanelRegion& region : regions_) ChooseHeight(&region);
  for (size_t i = 0; i < tasks_.size(); ++i)
    if (ReadsHandleToWrite(i))
      roles_[i].held_bytes = std::clamp(options_.pass_bytes, kLeastHeldOfBlocks, ops::kMostHeldByWrite);
}

const ValueInfo& PanelRoles::InfoOf(RegisterId id) const { return plan_.registers[Index(id)].info; }

// The task of the old plan, of this rank, that makes a register; kNone of another rank's, and of new ones.
size_t PanelRoles::ProducerOf(RegisterId id) const {
  return Index(id) < plan_.registers.size() ? places_.Of(plan_.registers[Index(id)].producer)
                                            : TaskPlaces::kNone;
}

PanelRoles::Content PanelRoles::ContentOf(RegisterId id) const {
  const size_t producer = id == kNone ? TaskPlaces::kNone : ProducerOf(id);
  if (producer == TaskPlaces::kNone || !roles_[producer].is_panelled) return Content::kWhole;
  const Task& task = tasks_[producer];
  const bool finishes = Reduces(producer) && task.phase == Phase::kWhole;
  if (IsControl(id)) return finishes || roles_[producer].appends ? Content::kResult : Content::kDone;
  if (!Reduces(producer) || !IsReduced(task, id)) return Content::kRows;
  return finishes ? Content::kResult : Content::kList;
}

bool PanelRoles::IsReduced(const Task& task, RegisterId id) const {
  const Node& node = plan_.graph[task.node];
  if (roles_[places_.Of(task.id)].rule == ops::RowRule::kReduce) return true;
  const auto at = std::find(task.produced.begin(), task.produced.end(), id) - task.produced.begin();
  return ops::FindOperator(node.op)->reduces(node, static_cast<size_t>(at));
}

bool PanelRoles::IsHandle(RegisterId id) const {
  const size_t producer = ProducerOf(id);
  if (producer == TaskPlaces::kNone || IsControl(id)) return false;
  const TaskRole& role = roles_[producer];
  if (role.is_lazy || role.takes_panels || role.is_view || IsForPanels(id) ||
      role.brings != TaskRole::Brings::kNothing)
    return true;
  const Task& task = tasks_[producer];
  if (role.stages) {
    const ops::StagedForm& form = FormOf(task, *role.stages);
    if (task.phase == Phase::kStage && task.stage + 1 < static_cast<int32_t>(form.stages.size()))
      return false;
    return ops::IsCutByRows(form, OutputOf(task, id));
  }
  const Node* const node = NodeOf(tasks_[producer]);
  return node != nullptr && node->Is("variable") && tasks_[producer].kind == TaskKind::kSource &&
         options_.panelled.contains(node->Text("name"));
}

bool PanelRoles::IsLarge(const ValueInfo& info) const {
  if (!info.IsTabular() || !info.IsSized()) return false;
  const double bytes = ops::BytesToMove(info);
  if (bytes > kMostPanelledBytes || bytes < static_cast<double>(options_.least_bytes)) return false;
  // Few rows that are long are cut between granules, where they are too large for a pass.
  const bool is_long = info.shape.rows > 1 && bytes > static_cast<double>(options_.pass_bytes);
  return info.shape.rows > Granule(info.shape.rows) || is_long;
}

// Whether a task reads this input row by row.
bool PanelRoles::ReadsRows(const Task& task, size_t i) const {
  const Node& node = plan_.graph[task.node];
  return i < node.inputs.size() &&
         ops::InputUseOf(node, InputInfos(plan_.graph, node), static_cast<int>(i)) == ops::InputUse::kRows;
}

// Whether the task reads rows from a handle as it needs them.
bool PanelRoles::TakesPanels(const Task& task) const {
  if (task.phase == Phase::kShape) return task.kind == TaskKind::kCompute;
  const Node* const node = NodeOf(task);
  if (node == nullptr || (task.phase != Phase::kWhole && task.phase != Phase::kStage)) return false;
  const ops::PanelUse use = ops::PanelUseOf(plan_.graph, *node);
  return use == ops::PanelUse::kReads || use == ops::PanelUse::kAppends;
}

bool PanelRoles::TakesPanels(size_t task, size_t input) const {
  const TaskRole& role = roles_[task];
  if (role.takes_panels || role.is_view) return true;
  if (!role.stages) return TakesPanels(tasks_[task]);
  const Node& node = plan_.graph[tasks_[task].node];
  if (tasks_[task].phase == Phase::kStage) {  // Behind its inputs it reads what the stage before has made.
    const ops::StagedForm& form = FormOf(tasks_[task], *role.stages);
    if (!form.stages[static_cast<size_t>(tasks_[task].stage)].reads_inputs || input >= node.inputs.size())
      return true;
  }
  return input < node.inputs.size() &&
         ops::InputUseOf(*ops::StagedFormAt(*ops::FindOperator(node.op), role.stages->form), node,
                         InputInfos(plan_.graph, node), static_cast<int>(input)) == ops::InputUse::kRows;
}

bool PanelRoles::IsWanted(RegisterId id) const {
  return id != kNone && (IsPanelled(id) || IsHandle(id) || IsLarge(InfoOf(id)));
}

// Whether the task acts once on panels, and how.
bool PanelRoles::HasRoleOfPanels(size_t i, ops::RowRule rule) {
  const Task& task = tasks_[i];
  const Node& node = plan_.graph[task.node];
  if (task.phase != Phase::kWhole || task.kind != TaskKind::kCompute || TakesPanels(task)) return false;
  TaskRole& role = roles_[i];
  const std::vector<ValueInfo> infos = InputInfos(plan_.graph, node);
  const ops::PanelUse use = ops::PanelUseOf(plan_.graph, node);
  if (rule == ops::RowRule::kWhole && use == ops::PanelUse::kViews) {
    for (size_t input = 0; input < infos.size() && !role.takes_panels; ++input)
      role.takes_panels = task.consumed[input] != kNone &&
                          (IsPanelled(task.consumed[input]) || IsHandle(task.consumed[input]));
    return role.takes_panels;
  }
  bool has_large = rule == ops::RowRule::kWhole;  // What it would need whole.
  for (size_t input = 0; input < infos.size() && !has_large; ++input)
    has_large = infos[input].IsTabular() && infos[input].IsSized() && !ReadsRows(task, input) &&
                ops::BytesToMove(infos[input]) > static_cast<double>(options_.stage_bytes);
  if (!has_large) return false;
  if (use == ops::PanelUse::kComputes) {
    role.takes_panels = IsWanted(task.consumed[0]) || IsWanted(task.consumed[1]);
    // The less, the more often operands are read.
    role.held_bytes = std::max(2 * options_.stage_bytes, kLeastHeldOfBlocks);
    return role.takes_panels;
  }
  // Of a task that has a share of the rows, the stages of all of them say nothing.
  const bool has_all_rows = rule == ops::RowRule::kWhole || plan_.ranks == 1;
  if (!has_all_rows) return false;
  role.stages = StagesInPanels(node, infos, static_cast<double>(options_.stage_bytes));
  if (!role.stages) return false;
  bool is_wanted = false;
  for (size_t input = 0; input < infos.size(); ++input)
    is_wanted |= TakesPanels(i, input) && IsWanted(task.consumed[input]);
  if (!is_wanted) role.stages.reset();
  return is_wanted;
}

// Whether the task is a write, or a stage of one, that reads its rows from a handle a few at a time.
bool PanelRoles::ReadsHandleToWrite(size_t i) const {
  const Node* const node = NodeOf(tasks_[i]);
  if (node == nullptr || !ops::HasRole(*node, ops::Role::kWrite) || roles_[i].appends) return false;
  if (tasks_[i].consumed.empty() || tasks_[i].consumed[0] == kNone) return false;
  return IsPanelled(tasks_[i].consumed[0]) || IsHandle(tasks_[i].consumed[0]);
}

bool PanelRoles::HasRole(size_t i) const {
  const TaskRole& role = roles_[i];
  return role.is_panelled || role.is_lazy || role.takes_panels || role.stages || role.is_view ||
         role.brings != TaskRole::Brings::kNothing;
}

// Whether the task is a write to whose file rows are appended as they pass. Several ranks write together, in
// stages.
bool PanelRoles::AppendsPanels(size_t i) const {
  const Task& task = tasks_[i];
  if (plan_.ranks > 1 || task.phase != Phase::kWhole ||
      ops::PanelUseOf(plan_.graph, plan_.graph[task.node]) != ops::PanelUse::kAppends)
    return false;
  const RegisterId rows = task.consumed[0];
  return (IsPanelled(rows) || IsHandle(rows)) && InfoOf(rows).IsSized();
}

void PanelRoles::FindRole(size_t i) {
  const Task& task = tasks_[i];
  TaskRole& role = roles_[i];
  if (const StagedPanels* const stages = StagesOfRanks(task); stages != nullptr) role.stages = *stages;
  const Node* const node = NodeOf(task);
  if (role.stages || FindRoleOfTransfer(i) || node == nullptr || task.axis != Axis::kRows) return;
  if (AppendsPanels(i)) {
    const int64_t rows = InfoOf(task.consumed[0]).shape.rows;
    role = {.is_panelled = rows > 0,
            .appends = rows > 0,
            .rule = ops::RowRule::kRowWise,
            .end = rows,
            .total = rows};
    return;
  }
  const bool computes = task.kind == TaskKind::kCompute || task.kind == TaskKind::kSource;
  if (!computes || (task.phase != Phase::kWhole && task.phase != Phase::kPartial)) return;
  const ops::Operator* const op = ops::FindOperator(node->op);
  if (op == nullptr || op->effect) return;
  const std::vector<ValueInfo> infos = InputInfos(plan_.graph, *node);
  const ops::RowRule rule = ops::RowRuleOf(*node, infos);
  if (HasRoleOfPanels(i, rule)) return;
  bool wanted = false;
  int64_t rows = 0;
  for (size_t input = 0; input < task.consumed.size(); ++input) {
    const RegisterId id = task.consumed[input];
    if (id == kNone || !ReadsRows(task, input)) continue;
    wanted |= IsWanted(id);
    rows = infos[input].shape.rows;
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
          .end = task.row_end,
          .total = task.total_rows};
  // Of a reduction that is whole, the task does not tell the rows that it reads.
  if (task.phase == Phase::kWhole && Reduces(i)) {
    role.begin = 0;
    role.end = role.total = rows;
  }
  if (role.end <= role.begin) role = {};
}

// The region whose tasks alone read the rows that a task makes, row by row.
std::optional<size_t> PanelRoles::OnlyRegionThatReads(size_t i) const {
  std::optional<size_t> region;
  for (const RegisterId id : tasks_[i].produced) {
    if (IsControl(id)) continue;
    for (const TaskId reader : plan_.registers[Index(id)].consumers) {
      const size_t at = places_.Of(reader);
      if (at == TaskPlaces::kNone || !roles_[at].is_panelled || !SameRows(roles_[i], roles_[at]))
        return std::nullopt;
      for (size_t input = 0; input < tasks_[at].consumed.size(); ++input)
        if (tasks_[at].consumed[input] == id && !ReadsRows(tasks_[at], input)) return std::nullopt;
      if (region && *region != roles_[at].region) return std::nullopt;
      region = roles_[at].region;
    }
  }
  return region;
}

bool PanelRoles::IsMadeAtOnce(size_t i) const {
  return i != TaskPlaces::kNone && roles_[i].is_panelled && roles_[i].rule == ops::RowRule::kGenerate;
}

bool PanelRoles::AwaitsActs(size_t task, RegisterId id) const {
  return ContentOf(id) == Content::kDone && AppendsIn(roles_[ProducerOf(id)].region, task);
}

bool PanelRoles::AppendsIn(size_t region, size_t task) const {
  return roles_[task].appends && roles_[task].region == region;
}

// Whether all that comes after a task, without reading its rows, acts in a later pass, or makes rows in the
// same one: that is not in order then (OrderOf). Or it is a write of that pass, which waits for each act.
bool PanelRoles::MayBeMadeIn(size_t region, size_t i) const {
  if (IsMadeAtOnce(i)) return roles_[i].region == region;
  if (!roles_[i].is_lazy || OnlyRegionThatReads(i) != region) return false;
  for (const RegisterId id : tasks_[i].produced) {
    if (!IsControl(id)) continue;
    for (const TaskId reader : plan_.registers[Index(id)].consumers) {
      const size_t at = places_.Of(reader);
      if (at == TaskPlaces::kNone) return false;
      if (AppendsIn(region, at)) continue;
      if (roles_[at].pass <= regions_[region].pass && !MayBeMadeIn(region, at)) return false;
    }
  }
  return true;
}

// Rows that one pass alone reads are made there.
void PanelRoles::MakeAtOnce(size_t i) {
  if (!roles_[i].is_lazy) return;
  const std::optional<size_t> region = OnlyRegionThatReads(i);
  if (!region || !MayBeMadeIn(*region, i)) return;
  roles_[i].is_lazy = false;
  roles_[i].is_panelled = true;
  roles_[i].region = *region;
  roles_[i].pass = regions_[*region].pass;
  regions_[*region].tasks.insert(regions_[*region].tasks.begin(), i);
}

std::vector<RegisterId> PanelRoles::OrderOf(size_t i) const {
  std::vector<RegisterId> order, open(tasks_[i].control_in);
  for (size_t next = 0; next < open.size(); ++next) {
    const RegisterId id = open[next];
    const size_t earlier = ProducerOf(id);
    const bool turns = IsMadeAtOnce(i) && IsMadeAtOnce(earlier) && roles_[i].region == roles_[earlier].region;
    if (!turns) order.push_back(id);
    if (!IsMadeAtOnce(earlier)) continue;
    for (const RegisterId before : tasks_[earlier].control_in) {
      const size_t maker = ProducerOf(before);
      const bool is_new = std::find(open.begin(), open.end(), before) == open.end();
      if (is_new && (turns || (IsMadeAtOnce(maker) && roles_[maker].region == roles_[earlier].region)))
        open.push_back(before);
    }
  }
  return order;
}

template <typename Visit>
void PanelRoles::ForInputs(size_t i, const Visit& visit) const {
  for (const RegisterId id : tasks_[i].consumed)
    if (id != kNone && ProducerOf(id) != TaskPlaces::kNone) visit(id, ProducerOf(id));
  for (const RegisterId id : tasks_[i].control_in)
    if (ProducerOf(id) != TaskPlaces::kNone) visit(id, ProducerOf(id));
}

// What comes of all panels is there when their pass is over. True if it is a later pass than was known.
bool PanelRoles::FindPass(size_t i) {
  const int before = roles_[i].pass;
  ForInputs(i, [&](RegisterId id, size_t producer) {
    const TaskRole& maker = roles_[producer];
    const bool same_pass = roles_[i].is_panelled && IsPanelled(id) && SameRows(roles_[i], maker);
    roles_[i].pass = std::max(roles_[i].pass, maker.pass + (maker.is_panelled && !same_pass ? 1 : 0));
  });
  return roles_[i].pass > before;
}

// Tasks of a rank come after what they read on it, but those of other ranks may stand behind them.
void PanelRoles::FindPasses() {
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (size_t i = 0; i < tasks_.size(); ++i) goes_on |= FindPass(i);
  }
}

// A task whose rows only later passes read acts in the first of these, so that its rows need not be kept.
void PanelRoles::Postpone(size_t i) {
  if (!roles_[i].is_panelled) return;
  const Node& node = plan_.graph[tasks_[i].node];
  const ops::Operator& op = *ops::FindOperator(node.op);
  if (op.may_fail || Reduces(i)) return;
  int first = INT32_MAX;
  for (const RegisterId id : tasks_[i].produced) {
    if (IsControl(id)) return;
    for (const TaskId reader : plan_.registers[Index(id)].consumers) {
      const size_t at = places_.Of(reader);
      if (at == TaskPlaces::kNone || !roles_[at].is_panelled || !SameRows(roles_[i], roles_[at])) return;
      first = std::min(first, roles_[at].pass);
    }
  }
  if (first != INT32_MAX) roles_[i].pass = std::max(roles_[i].pass, first);
}

// Panelled tasks of one pass are together where one reads what another makes, and where they read rows of
// the same value.
void PanelRoles::FindRegions() {
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
      const bool together =
          IsPanelled(id) && roles_[producer].pass == roles_[i].pass && SameRows(roles_[producer], roles_[i]);
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
      regions_.back().rank = tasks_[i].id.rank();
      regions_.back().pass = roles_[i].pass;
      regions_.back().begin = roles_[i].begin;
      regions_.back().end = roles_[i].end;
    }
    roles_[i].region = found->second;
    regions_[found->second].tasks.push_back(i);
  }
}

// As many rows as the panels of the pass may take, in granules; a power of two of them, so that panels are
// few nodes of a reduction's tree. Where nothing is reduced and a granule is more, fewer rows.
void PanelRoles::ChooseHeight(PanelRegion* region) const {
  double row_bytes = 0;
  std::vector<RegisterId> counted;  // Of CSR matrices, whose entries are known.
  int64_t total = region->end;
  const auto add = [&](RegisterId id) {
    if (id == kNone || IsControl(id)) return;
    const Content content = ContentOf(id);
    if (content == Content::kList || content == Content::kResult) return;
    const ValueInfo& info = InfoOf(id);
    if (!info.IsTabular() || !info.IsSized() || info.shape.rows == 0) return;
    const bool is_counted = entries_.MostBytes(id, 1) != kUnknown;
    if (is_counted) counted.push_back(id);
    row_bytes += (is_counted ? static_cast<double>(KnownBytes(info)) : ops::BytesToMove(info)) /
                 static_cast<double>(info.shape.rows);
  };
  // Rows that an earlier pass has made come from where they are kept.
  const auto is_made_here = [&](RegisterId id) {
    return IsPanelled(id) && &regions_[roles_[ProducerOf(id)].region] == region;
  };
  for (const size_t i : region->tasks) {
    total = std::max(total, roles_[i].total);
    for (const RegisterId id : tasks_[i].produced) add(id);
    for (size_t input = 0; input < tasks_[i].consumed.size(); ++input)
      if (!is_made_here(tasks_[i].consumed[input]) && ReadsRows(tasks_[i], input))
        add(tasks_[i].consumed[input]);
  }
  const int64_t granule = Granule(total);
  const double rows = static_cast<double>(options_.pass_bytes) / std::max(row_bytes, 1.0);
  const auto granules = static_cast<int64_t>(
      std::clamp(rows / static_cast<double>(granule), 1.0, static_cast<double>(CeilDivide(total, granule))));
  region->height = FloorPowerOfTwo(granules) * granule;
  const bool reduces =
      std::any_of(region->tasks.begin(), region->tasks.end(), [&](size_t i) { return Reduces(i); });
  if (!reduces && rows < static_cast<double>(granule))
    region->height = FloorPowerOfTwo(std::max<int64_t>(1, static_cast<int64_t>(rows)));
  const auto fits = [&] {
    double bytes = row_bytes * static_cast<double>(region->height);
    for (const RegisterId id : counted) bytes += static_cast<double>(entries_.MostBytes(id, region->height));
    return bytes <= static_cast<double>(options_.pass_bytes);
  };
  while (!counted.empty() && region->height > granule && !fits()) region->height /= 2;
}

}  // namespace heddle::scheduler
