// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "core/programs/plan.h"
#include "scheduler/panel_roles.h"
#include "scheduler/passes/task_writer.h"

namespace heddle::scheduler {

/// The tasks that bring what is in panels from one rank to another: its rows in panels, or what a stage makes
/// for the panels of the other rank part by part. Neither rank has more than a few pieces in memory: "unpack"
/// of the one, a copy and "accumulate" of the other act once a piece.
class PanelTransfers {
 public:
  PanelTransfers(const Plan& old, const PanelRoles& roles, TaskWriter* writer)
      : old_(old), roles_(roles), writer_(*writer) {}

  /// On the rank that has register `id` of the old plan, as the handle `kept`: the task whose output other
  /// ranks copy.
  Task Spread(RegisterId id, RegisterId kept, const Task& maker);

  /// On the rank that gets them: the pass of these copies of the old plan, which begins after the control
  /// register `after` (kNone: at any time). `handles` is told what each of their registers becomes.
  std::vector<Task> Bring(const std::vector<size_t>& copies, RegisterId after,
                          std::map<RegisterId, RegisterId>* handles);

 private:
  RegisterId StartOf(int64_t acts, RegisterId after, const Task& like, std::vector<Task>* starts);
  void SetPiece(RegisterId made, RegisterId of, const PanelRoles::Pieces& pieces);
  void SetRows(Task* task, RegisterId of, const PanelRoles::Pieces& pieces);

  const Plan& old_;
  const PanelRoles& roles_;
  TaskWriter& writer_;
};

}  // namespace heddle::scheduler
