// SPDX-License-Identifier: Apache-2.0
// Operators that all ranks compute together with exchanges in between, or none.
#include <algorithm>
#include <utility>

#include "scheduler/plan_builder.h"

namespace heddle::scheduler {

void PlanBuilder::EmitStages(NodeId id) {
  const Node& node = graph_[id];
  const Placement& placement = placements_[static_cast<size_t>(id)];
  const ops::StagedForm& form = *placement.staged;
  plan_.staged.push_back({id, placement.form, placement.cuts, placement.result_rows});
  const ops::RankGrid grid = placement.Grid(ranks_);
  if (form.on_grid) plan_.graph[id].SetAttribute(ops::kGridColumns, Scalar(int64_t{grid.columns}));
  const bool is_effect = form.result == ops::StagedResult::kFinished;
  const std::vector<size_t> others =
      ops::HasRole(node, ops::Role::kWrite) ? OtherRanksReady(id) : std::vector<size_t>();
  std::vector<RegisterId> lists;                                               // Of an effect, by rank.
  std::vector<std::vector<RegisterId>> received(static_cast<size_t>(ranks_));  // By rank.
  for (size_t stage = 0; stage < form.stages.size(); ++stage) {
    const bool is_last = stage + 1 == form.stages.size();
    std::vector<std::vector<RegisterId>> made(static_cast<size_t>(ranks_));
    for (int32_t rank = 0; rank < ranks_; ++rank) {
      if (stage == 0) BringOrder(id, rank);
      std::vector<RegisterId> inputs;
      if (form.stages[stage].reads_inputs)
        for (size_t i = 0; i < node.inputs.size(); ++i)
          inputs.push_back(node.inputs[i] == kNoNode ? kNoRegister
                                                     : Piece(node.inputs[i], placement.inputs[i], rank));
      const std::vector<RegisterId>& from_before = received[static_cast<size_t>(rank)];
      inputs.insert(inputs.end(), from_before.begin(), from_before.end());
      if (ops::HandsOn(form.stages[stage]) && rank > 0)
        inputs.push_back(AddCopy(made[static_cast<size_t>(rank) - 1].back(), rank));
      const size_t index =
          AddTask(rank, StreamKind::kCompute, TaskKind::kCompute, id, Phase::kStage, std::move(inputs));
      Task& task = plan_.tasks[index];
      task.stage = static_cast<int32_t>(stage);
      task.axis = placement.cuts.axis;
      task.total_rows = placement.total_rows;
      task.row_begin = placement.cuts.Begin(rank);
      task.row_end = placement.cuts.End(rank);
      if (is_last && is_effect) {
        lists.push_back(AddOutput(index, ValueInfo::OfMatrix({kUnknown, kUnknown})));
      } else if (is_last) {
        AddStagedResults(id, index);
      } else {
        const size_t outputs = ops::ValuesMade(form.stages[stage], grid, rank);
        for (size_t i = 0; i < outputs; ++i)
          made[static_cast<size_t>(rank)].push_back(
              AddOutput(index, ValueInfo::OfMatrix({kUnknown, kUnknown})));
      }
      if (stage == 0) AddControl(index);
      last_task_[{id, rank}] = index;
    }
    if (!is_last) received = Exchange(id, form.stages[stage], grid, made);
  }
  if (is_effect) {
    EmitFinish(id, {lists}, {0});
    // Until then nobody sees any of it.
    for (const size_t ready : others) AddOrder(ready, last_task_.at({id, 0}));
  } else if (!node.info.IsTuple()) {
    pieces_[{id, placement.result}] = std::move(outputs_[id][0]);
  }
}

std::vector<std::vector<RegisterId>> PlanBuilder::Exchange(NodeId id, const ops::Stage& stage,
                                                           const ops::RankGrid& grid,
                                                           const std::vector<std::vector<RegisterId>>& made) {
  std::vector<std::vector<RegisterId>> received(static_cast<size_t>(ranks_));
  std::vector<size_t> places(static_cast<size_t>(ranks_), 0);  // By rank: of its first value of the output.
  for (const ops::Reach reach : stage.outputs) {
    const auto value = [&](int32_t from, int32_t number) {
      return made[static_cast<size_t>(from)][places[static_cast<size_t>(from)] + static_cast<size_t>(number)];
    };
    std::vector<RegisterId> of_all;
    if (reach == ops::Reach::kAll) {
      for (int32_t rank = 0; rank < ranks_; ++rank) of_all.push_back(value(rank, 0));
      of_all = GatherToAll(id, of_all, ValueInfo::OfMatrix({kUnknown, kUnknown}));
    }
    for (int32_t rank = 0; rank < ranks_; ++rank) {
      std::vector<RegisterId>& here = received[static_cast<size_t>(rank)];
      const auto take = [&](int32_t from, int32_t number) {
        const RegisterId part = value(from, number);
        here.push_back(from == rank ? part : AddCopy(part, rank));
      };
      const int32_t row = grid.RowOf(rank), column = grid.ColumnOf(rank);
      switch (reach) {
        case ops::Reach::kNext: break;
        case ops::Reach::kHere: here.push_back(value(rank, 0)); break;
        case ops::Reach::kAll: here.push_back(of_all[static_cast<size_t>(rank)]); break;
        case ops::Reach::kParts:
          for (int32_t from = 0; from < ranks_; ++from) take(from, rank);
          break;
        case ops::Reach::kFromLast: take(ranks_ - 1, rank); break;
        case ops::Reach::kRowParts:
          for (int32_t i = 0; i < grid.columns; ++i) take(grid.At(row, i), column);
          break;
        case ops::Reach::kRowCopies:
          for (int32_t i = 0; i < grid.columns; ++i) take(grid.At(row, i), 0);
          break;
        case ops::Reach::kColumnCopies:
          for (int32_t i = 0; i < grid.rows(); ++i) take(grid.At(i, column), 0);
          break;
      }
    }
    for (int32_t rank = 0; rank < ranks_; ++rank)
      places[static_cast<size_t>(rank)] += ops::ValuesMade(reach, grid, rank);
  }
  return received;
}

void PlanBuilder::AddStagedResults(NodeId id, size_t task) {
  const Node& node = graph_[id];
  const Placement& placement = placements_[static_cast<size_t>(id)];
  const auto rank = static_cast<int32_t>(plan_.tasks[task].id.rank());
  const std::span<const ValueInfo> results = ResultsOf(node);
  std::vector<std::vector<RegisterId>>& outputs = outputs_[id];
  outputs.resize(results.size(), std::vector<RegisterId>(static_cast<size_t>(ranks_), kNoRegister));
  for (size_t i = 0; i < results.size(); ++i) {
    const Distribution where = DistributionOf(node, placement, i);
    ValueInfo info = results[i];
    if (where.IsSplit() && where.split.cuts.empty())
      info.shape.rows = kUnknown;
    else if (where.IsSplit())
      info = PartInfo(info, where.split, rank);
    else if (where.IsOne())
      info = PartInfo(info, placement.result_rows, rank);
    outputs[i][static_cast<size_t>(rank)] = AddOutput(task, info);
  }
}

}  // namespace heddle::scheduler
