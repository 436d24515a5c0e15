// SPDX-License-Identifier: Apache-2.0
#include "scheduler/panel_transfers.h"

#include <utility>

namespace heddle::scheduler {

// What a piece is: some rows of the value, or a part of what stages exchange.
void PanelTransfers::SetPiece(RegisterId made, RegisterId of, const PanelRoles::Pieces& pieces) {
  Register& reg = writer_.RegisterOf(made);
  reg.info = old_.registers[static_cast<size_t>(of)].info;
  if (pieces.rows > 0) reg.info.shape.rows = pieces.rows;
  reg.bytes = pieces.bytes;
}

void PanelTransfers::SetRows(Task* task, RegisterId of, const PanelRoles::Pieces& pieces) {
  task->rate = pieces.count;
  if (pieces.rows == 0) return;
  task->row_begin = 0;
  task->row_end = task->total_rows = old_.registers[static_cast<size_t>(of)].info.shape.rows;
  task->panel_rows = pieces.rows;
}

Task PanelTransfers::Spread(RegisterId id, RegisterId kept, const Task& maker) {
  const PanelRoles::Pieces pieces = roles_.PiecesOf(id);
  Task task = writer_.NewTask(TaskKind::kUnpack, Phase::kSlice, maker);
  writer_.PutOnDisk(&task);
  SetRows(&task, id, pieces);
  writer_.Consume(&task, kept);
  SetPiece(writer_.NewRegister(&task, {}), id, pieces);
  return task;
}

// A copy acts when its piece is there, and what had its memory before is done with.
RegisterId PanelTransfers::StartOf(int64_t acts, RegisterId after, const Task& like,
                                   std::vector<Task>* starts) {
  const bool is_first = after == TaskWriter::kNone;
  Task start = writer_.NewTask(is_first ? TaskKind::kSource : TaskKind::kRepeat, Phase::kReady, like);
  start.node = kNoNode;
  (is_first ? start.count : start.rate) = acts;
  if (!is_first) writer_.Await(&start, after);
  const RegisterId made = writer_.NewRegister(&start, {}, /*control=*/true);
  starts->push_back(std::move(start));
  return made;
}

std::vector<Task> PanelTransfers::Bring(const std::vector<size_t>& copies, RegisterId after,
                                        std::map<RegisterId, RegisterId>* handles) {
  std::map<int64_t, RegisterId> starts;  // By how often the copies act.
  std::vector<Task> tasks, acts, ends;
  for (const size_t i : copies) {
    const Task& old = old_.tasks[i];
    const RegisterId source = old.consumed[0], piece = old.produced[0];
    const PanelRoles::Pieces pieces = roles_.PiecesOf(source);
    const auto [start, is_new] = starts.try_emplace(pieces.count, TaskWriter::kNone);
    if (is_new) start->second = StartOf(pieces.count, after, old, &tasks);
    Task copy = old;
    copy.consumed.clear();
    copy.control_in.clear();
    writer_.Consume(&copy, source);
    writer_.Await(&copy, start->second);
    SetPiece(piece, source, pieces);
    acts.push_back(std::move(copy));
    Task collect = writer_.NewTask(TaskKind::kAccumulate, Phase::kPanels, old);
    collect.node = old_.tasks[roles_.ProducerOf(source)].node;
    writer_.PutOnDisk(&collect);
    SetRows(&collect, source, pieces);
    writer_.Consume(&collect, piece);
    const RegisterId handle = writer_.NewRegister(&collect, old_.registers[static_cast<size_t>(source)].info);
    writer_.RegisterOf(handle).bytes = 0;  // Its rows are the store's.
    (*handles)[piece] = handle;
    ends.push_back(std::move(collect));
  }
  for (std::vector<Task>* list : {&acts, &ends})
    for (Task& task : *list) tasks.push_back(std::move(task));
  return tasks;
}

}  // namespace heddle::scheduler
