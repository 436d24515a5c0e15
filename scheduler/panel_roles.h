// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/programs/task_places.h"
#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "scheduler/panel_entries.h"
#include "scheduler/panel_plan.h"
#include "scheduler/staged_panels.h"

namespace heddle::scheduler {

/// What a plan in panels does with one task of the plan that it is made of.
struct TaskRole {
  bool is_panelled = false;                 ///< It acts once a panel.
  bool is_lazy = false;                     ///< It makes a handle to rows that are made when they are read.
  bool appends = false;                     ///< Panelled: a write, to whose file each panel is appended.
  bool takes_panels = false;                ///< Its kernel reads handles, and makes one.
  int64_t held_bytes = 0;                   ///< What such a kernel may hold of their rows.
  std::optional<StagedPanels> stages = {};  ///< It acts once, on panels of what it reads by rows: in all of
                                            ///< its stages or, of Phase::kStage, in one.
  /// Of a copy of what is in panels on another rank: it acts once a piece, and comes to be a handle.
  enum class Brings : uint8_t {
    kNothing,
    kRows,   ///< Panel by panel.
    kParts,  ///< What a stage in panels makes for the panels of this rank.
  } brings = Brings::kNothing;
  bool is_view = false;  ///< Its rows are rows of what it reads, which is panels.
  ops::RowRule rule = ops::RowRule::kWhole;
  int64_t begin = 0, end = 0;  ///< Its rows, all panels together,
  int64_t total = 0;           ///< of so many of the whole value.
  int pass = 0;       ///< Of a panelled task: the level of its pass. Else that of the passes before it.
  size_t region = 0;  ///< Of a panelled task: its pass, among PanelRoles::regions().
};

/// A pass: the panelled tasks of a rank that act in turns, panel by panel.
struct PanelRegion {
  uint32_t rank = 0;
  int pass = 0;
  int64_t begin = 0, end = 0;
  int64_t height = 0;         ///< Rows of a panel.
  std::vector<size_t> tasks;  ///< Of the plan, in its order.
  int64_t panels() const { return CeilDivide(end - begin, height); }
};

/// Which tasks of a plan act panel by panel, in which passes. Passes are counted alike on all ranks: what a
/// task reads, of whatever rank, is of an earlier one or of its own. Functions of the plan and the options
/// alone.
class PanelRoles {
 public:
  /// What is larger is taken for a mistake of the script and refused, as what has to be whole: reading it
  /// once takes longer than anybody waits.
  static constexpr double kMostPanelledBytes = 1e13;

  PanelRoles(const Plan& plan, const PanelOptions& options);

  const std::vector<TaskRole>& roles() const { return roles_; }
  const std::vector<PanelRegion>& regions() const { return regions_; }
  const PanelEntries& entries() const { return entries_; }

  /// What a register is in the plan in panels.
  enum class Content : uint8_t {
    kWhole,   ///< What it was.
    kRows,    ///< Of a panel each.
    kList,    ///< A list of tree nodes of each panel.
    kResult,  ///< Of a reduction: whole, when its pass is over.
    kDone,    ///< Control, of each act.
  };
  Content ContentOf(RegisterId id) const;
  bool IsPanelled(RegisterId id) const { return ContentOf(id) == Content::kRows; }
  /// A live-in that is there as panels, rows that can be made at any time, or what operators make of panels.
  bool IsHandle(RegisterId id) const;
  /// What a stage in panels makes for the panels of a rank (ops::PartsOfPanels); not the copy of it.
  bool IsForPanels(RegisterId id) const;
  /// Whether other ranks copy it piece by piece.
  bool IsInPieces(RegisterId id) const;
  /// How: in panels of `rows` rows, or in as many parts as are for the panels of the other rank.
  struct Pieces {
    int64_t count = 0, rows = 0, bytes = 0;
  };
  Pieces PiecesOf(RegisterId id) const;
  bool IsControl(RegisterId id) const { return plan_.registers[Index(id)].control; }
  /// The task that makes a register; TaskPlaces::kNone of registers that the plan does not have.
  size_t ProducerOf(RegisterId id) const;
  size_t PlaceOf(TaskId id) const { return places_.Of(id); }
  /// nullptr where the task has none.
  const Node* NodeOf(const Task& task) const {
    return task.node == kNoNode ? nullptr : &plan_.graph[task.node];
  }
  /// Whether it makes lists of tree nodes, or did, and results of them.
  bool Reduces(size_t task) const {
    return roles_[task].rule == ops::RowRule::kReduce || roles_[task].rule == ops::RowRule::kMixed;
  }
  /// Whether a task reads this input row by row.
  bool ReadsRows(const Task& task, size_t i) const;
  /// Whether the task reads rows from a handle as it needs them.
  bool TakesPanels(const Task& task) const;
  /// Whether it does so with this input.
  bool TakesPanels(size_t task, size_t input) const;
  /// The control registers that a task waits for. Tasks that make rows in the same pass take turns, and
  /// neither waits for all of the other's: who comes after the second waits for the first as well.
  std::vector<RegisterId> OrderOf(size_t task) const;
  /// Whether the task waits for each act of who makes this control register. A write that appends does so
  /// with what it comes after in its pass: at its last act, when the file appears, all rows have been made.
  bool AwaitsActs(size_t task, RegisterId id) const;

 private:
  static size_t Index(RegisterId id) { return static_cast<size_t>(id); }
  const ValueInfo& InfoOf(RegisterId id) const;
  static size_t OutputOf(const Task& task, RegisterId id);  // Among the values that it makes.
  bool IsReduced(const Task& task, RegisterId id) const;
  bool IsLarge(const ValueInfo& info) const;
  void FindRole(size_t i);
  bool IsWanted(RegisterId id) const;
  bool HasRoleOfPanels(size_t i, ops::RowRule rule);
  bool FindRoleOfTransfer(size_t i);
  bool ReadsHandleToWrite(size_t i) const;
  bool HasRole(size_t i) const;
  void FindStagesOfRanks();
  const StagedPanels* StagesOfRanks(const Task& task) const;
  const ops::StagedForm& FormOf(const Task& task, const StagedPanels& stages) const;
  bool AppendsPanels(size_t i) const;
  std::optional<size_t> OnlyRegionThatReads(size_t task) const;
  bool IsMadeAtOnce(size_t task) const;
  bool AppendsIn(size_t region, size_t task) const;
  bool MayBeMadeIn(size_t region, size_t task) const;
  void MakeAtOnce(size_t i);
  template <typename Visit>
  void ForInputs(size_t task, const Visit& visit) const;
  bool FindPass(size_t i);
  void FindPasses();
  void Postpone(size_t i);
  void FindRegions();
  void ChooseHeight(PanelRegion* region) const;

  const Plan& plan_;
  const std::vector<Task>& tasks_;
  const PanelOptions& options_;
  const TaskPlaces places_;
  const PanelEntries entries_;
  std::map<NodeId, StagedPanels> stages_of_ranks_;  // Of nodes that several ranks compute panel by panel.
  std::vector<TaskRole> roles_;
  std::vector<PanelRegion> regions_;
};

}  // namespace heddle::scheduler
