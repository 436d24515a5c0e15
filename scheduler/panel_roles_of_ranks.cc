// SPDX-License-Identifier: Apache-2.0
// What several ranks do together in a plan in panels: stages, and what goes from one to another.
#include <algorithm>

#include "core/programs/input_infos.h"
#include "core/values/panels.h"
#include "ops/base/split.h"
#include "ops/base/stages.h"
#include "ops/panels/staged_run.h"
#include "scheduler/panel_roles.h"

namespace heddle::scheduler {
namespace {

// Rows that go to another rank: large pieces have no fewer bytes, small ones take less memory on both.
constexpr int64_t kMostPieceBytes = int64_t{2} << 20, kPiecesOfPass = 8;

}  // namespace

bool PanelRoles::IsForPanels(RegisterId id) const {
  const size_t producer = ProducerOf(id);
  if (producer == TaskPlaces::kNone || IsControl(id)) return false;
  const Task& task = tasks_[producer];
  const StagedPanels* const stages = StagesOfRanks(task);
  if (stages == nullptr) return false;
  const ops::StagedForm& form = FormOf(task, *stages);
  return task.stage + 1 < static_cast<int32_t>(form.stages.size()) &&
         ops::IsKeptInPanels(form.stages[static_cast<size_t>(task.stage)], plan_.ranks,
                             static_cast<int32_t>(task.id.rank()), OutputOf(task, id));
}

bool PanelRoles::IsInPieces(RegisterId id) const {
  return IsForPanels(id) || ((IsPanelled(id) || IsHandle(id)) && IsLarge(InfoOf(id)));
}

PanelRoles::Pieces PanelRoles::PiecesOf(RegisterId id) const {
  if (!IsForPanels(id)) {
    const ValueInfo& info = InfoOf(id);
    const double row_bytes = std::max(1.0, ops::BytesToMove(info) / static_cast<double>(info.shape.rows));
    const double most_bytes =
        static_cast<double>(std::min(kMostPieceBytes, options_.pass_bytes / kPiecesOfPass));
    const auto rows =
        static_cast<int64_t>(std::clamp(most_bytes / row_bytes, 1.0, static_cast<double>(info.shape.rows)));
    return {.count = CeilDivide(info.shape.rows, rows),
            .rows = rows,
            .bytes = static_cast<int64_t>(row_bytes * static_cast<double>(rows))};
  }
  const Task& task = tasks_[ProducerOf(id)];
  const StagedPanels& stages = *StagesOfRanks(task);
  const Node& node = plan_.graph[task.node];
  const int32_t panels = stages.grid.ranks / plan_.ranks;
  const ops::Stage& stage = FormOf(task, stages).stages[static_cast<size_t>(task.stage)];
  const auto rank = static_cast<int32_t>(task.id.rank());
  const size_t of_each = ops::PartsOfEachPanel(stage, plan_.ranks, rank, OutputOf(task, id), panels);
  return {.count = panels * static_cast<int64_t>(of_each),
          .bytes = BytesOfPart(stages, node, InputInfos(plan_.graph, node), plan_.ranks)};
}

size_t PanelRoles::OutputOf(const Task& task, RegisterId id) {
  return static_cast<size_t>(std::find(task.produced.begin(), task.produced.end(), id) -
                             task.produced.begin());
}

const ops::StagedForm& PanelRoles::FormOf(const Task& task, const StagedPanels& stages) const {
  return *ops::StagedFormAt(*ops::FindOperator(plan_.graph[task.node].op), stages.form);
}

// Of all ranks alike: what one of them sends in panels the others have to take so.
void PanelRoles::FindStagesOfRanks() {
  if (plan_.ranks == 1) return;
  for (const StagedNode& staged : plan_.staged) {
    const Node& node = plan_.graph[staged.node];
    std::vector<ValueInfo> infos = InputInfos(plan_.graph, node);
    infos.push_back(node.info);
    if (std::any_of(infos.begin(), infos.end(),
                    [](const ValueInfo& info) { return ops::BytesToMove(info) > kMostPanelledBytes; }))
      continue;
    const std::optional<StagedPanels> stages =
        StagesInPanels(staged, node, InputInfos(plan_.graph, node), plan_.ranks,
                       static_cast<double>(options_.least_bytes), static_cast<double>(options_.stage_bytes));
    if (stages) stages_of_ranks_.emplace(staged.node, *stages);
  }
}

const StagedPanels* PanelRoles::StagesOfRanks(const Task& task) const {
  if (task.phase != Phase::kStage || task.kind != TaskKind::kCompute) return nullptr;
  const auto found = stages_of_ranks_.find(task.node);
  return found == stages_of_ranks_.end() ? nullptr : &found->second;
}

// Of what brings rows, or other values, to where they are needed.
bool PanelRoles::FindRoleOfTransfer(size_t i) {
  const Task& task = tasks_[i];
  TaskRole& role = roles_[i];
  if (task.kind == TaskKind::kCopy && !task.consumed.empty() && IsInPieces(task.consumed[0]))
    role.brings = IsForPanels(task.consumed[0]) ? TaskRole::Brings::kParts : TaskRole::Brings::kRows;
  // Few rows of panels are read alone, and put together behind that.
  const bool moves_rows =
      task.phase == Phase::kSlice || (task.phase == Phase::kGather && IsLarge(InfoOf(task.produced[0])));
  if (task.kind == TaskKind::kCompute && moves_rows && task.axis == Axis::kRows)
    role.is_view = std::any_of(task.consumed.begin(), task.consumed.end(),
                               [&](RegisterId id) { return IsPanelled(id) || IsHandle(id); });
  return role.is_view || role.brings != TaskRole::Brings::kNothing;
}

}  // namespace heddle::scheduler
