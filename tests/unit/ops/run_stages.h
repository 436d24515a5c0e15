// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "ops/base/stages.h"
#include "ops/cells/column_pieces.h"
#include "ops/frame/row_pieces.h"
#include "ops/panels/kept_parts.h"
#include "ops/panels/staged_run.h"
#include "tests/unit/ops/panels/panels_fixture.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops::testing {

/// The pieces of rank `rank`: of inputs that the form reads by rows (columns) its own, the others whole.
inline std::vector<Value> PiecesOf(const StagedForm& form, const Invocation& call, const Split& rows,
                                   int32_t rank) {
  const auto ranks = static_cast<int32_t>(rows.cuts.size()) - 1;
  std::vector<Value> pieces(call.inputs.size());
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i]) continue;
    pieces[i] = *call.inputs[i];
    if (IsCrossed(form, i)) pieces[i] = *SliceRows(*call.inputs[i], rows.Begin(rank), rows.End(rank));
    if (InputUseOf(form, call.node, call.infos, static_cast<int>(i)) != InputUse::kRows) continue;
    if (form.axis == Axis::kColumns) {
      pieces[i] = *ColumnsOfValue(*call.inputs[i], rows.Begin(rank), rows.End(rank));
      continue;
    }
    const int64_t length = call.inputs[i]->shape().rows;
    const Split own = length == rows.Length() ? rows : Distribution::SplitRows(length, ranks).split;
    pieces[i] = *SliceRows(*call.inputs[i], own.Begin(rank), own.End(rank));
  }
  return pieces;
}

/// The same by the row rule of the operator.
inline std::vector<Value> PiecesOf(const Invocation& call, const Split& rows, int32_t rank) {
  std::vector<Value> pieces(call.inputs.size());
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i]) continue;
    const bool by_rows = InputUseOf(call.node, call.infos, static_cast<int>(i)) == InputUse::kRows;
    pieces[i] = by_rows ? *SliceRows(*call.inputs[i], rows.Begin(rank), rows.End(rank)) : *call.inputs[i];
  }
  return pieces;
}

/// What ranks have sent each other.
struct SentBytes {
  double all = 0;
  int64_t messages = 0;

  void Add(const Value& value) {
    ++messages;
    if (!value.IsMatrix()) return;
    const Matrix& x = value.matrix();
    all += x.IsSparse() ? static_cast<double>(12 * x.stored() + 8 * (x.rows() + 1))
                        : static_cast<double>(BytesOf(x.element_type()) * x.cells());
  }
};

/// What a rank receives of all that ranks have made in a stage.
inline std::vector<Value> ReceivedBy(int32_t rank, const Stage& stage, const RankGrid& grid,
                                     const std::vector<std::vector<Value>>& made, SentBytes* sent) {
  std::vector<Value> received;
  std::vector<size_t> places(made.size(), 0);
  for (const Reach reach : stage.outputs) {
    const auto take = [&](int32_t from, int32_t number) {
      received.push_back(
          made[static_cast<size_t>(from)][places[static_cast<size_t>(from)] + static_cast<size_t>(number)]);
      if (from != rank) sent->Add(received.back());
    };
    switch (reach) {
      case Reach::kNext:
        if (rank > 0) sent->Add(made[static_cast<size_t>(rank) - 1].back());
        break;
      case Reach::kHere: take(rank, 0); break;
      case Reach::kAll: {
        std::vector<const Value*> of_all;
        for (int32_t from = 0; from < grid.ranks; ++from) {
          of_all.push_back(&made[static_cast<size_t>(from)][places[static_cast<size_t>(from)]]);
          if (from != rank) sent->Add(*of_all.back());
        }
        const Result<Value> all = JoinRows(of_all);
        EXPECT_TRUE(all.ok()) << all.status().ToString();
        received.push_back(all.ok() ? *all : Value());
        break;
      }
      case Reach::kParts:
        for (int32_t from = 0; from < grid.ranks; ++from) take(from, rank);
        break;
      case Reach::kFromLast: take(grid.ranks - 1, rank); break;
      case Reach::kRowParts:
        for (int32_t i = 0; i < grid.columns; ++i) take(grid.At(grid.RowOf(rank), i), grid.ColumnOf(rank));
        break;
      case Reach::kRowCopies:
        for (int32_t i = 0; i < grid.columns; ++i) take(grid.At(grid.RowOf(rank), i), 0);
        break;
      case Reach::kColumnCopies:
        for (int32_t i = 0; i < grid.rows(); ++i) take(grid.At(i, grid.ColumnOf(rank)), 0);
        break;
    }
    for (int32_t from = 0; from < grid.ranks; ++from)
      places[static_cast<size_t>(from)] += ValuesMade(reach, grid, from);
  }
  return received;
}

/// How ranks run a form: as a plan says it.
struct StagesRun {
  Split rows;                ///< Of the inputs that are read by rows.
  int32_t place = 0;         ///< Which of the forms of the operator.
  bool on_last = false;      ///< All rows of the result are made on the last rank.
  Status* failed = nullptr;  ///< Where a failure of a stage is left; nullptr: it fails the test.
  SentBytes* sent = nullptr;
};

/// An operator in its staged form, as the ranks run it that have the inputs cut so: the results by rank. None
/// where a stage fails.
inline std::vector<std::vector<Value>> RunStages(Invocation& call, const StagesRun& run) {
  const Result<std::vector<ValueInfo>> inferred = call.InferWith(call.scalars);
  EXPECT_TRUE(inferred.ok()) << inferred.status().ToString();
  if (!inferred.ok()) return {};
  call.SetInfos(*inferred);
  if (call.node.info.IsMatrix() && call.infos[0].IsMatrix() && !call.op->infers_element_types)
    call.node.info.element_type = call.infos[0].element_type;
  const StagedForm* const form = StagedFormAt(*call.op, run.place);
  EXPECT_TRUE(form != nullptr && (form->applies == nullptr || form->applies(call.node, call.infos)))
      << call.node.op;
  if (form == nullptr) return {};
  const auto ranks = static_cast<int32_t>(run.rows.cuts.size()) - 1;
  const RankGrid grid = GridOf(call.node, ranks);
  SentBytes sent;
  Split result_rows;
  if (form->result == StagedResult::kSameRows || form->result == StagedResult::kSameColumns ||
      form->result == StagedResult::kTurned)
    result_rows = run.rows;
  if (form->result == StagedResult::kTurned)
    result_rows.axis = form->axis == Axis::kRows ? Axis::kColumns : Axis::kRows;
  if (form->result == StagedResult::kColumns) {
    result_rows = Distribution::SplitRows((*inferred)[0].shape.columns, ranks).split;
    result_rows.axis = Axis::kColumns;
  }
  if (form->result == StagedResult::kRows)
    result_rows = Distribution::SplitRows((*inferred)[0].shape.rows, ranks).split;
  if (run.on_last) {
    result_rows.cuts.assign(static_cast<size_t>(ranks) + 1, 0);
    result_rows.cuts.back() = (*inferred)[0].shape.rows;
  }
  std::vector<std::vector<Value>> made(static_cast<size_t>(ranks));  // By rank: the outputs of a stage.
  for (int32_t stage = 0; stage < static_cast<int32_t>(form->stages.size()); ++stage) {
    const bool is_last = stage + 1 == static_cast<int32_t>(form->stages.size());
    const Stage& now = form->stages[static_cast<size_t>(stage)];
    std::vector<std::vector<Value>> next(static_cast<size_t>(ranks));
    for (int32_t rank = 0; rank < ranks; ++rank) {
      std::vector<Value> held;
      if (stage > 0) held = ReceivedBy(rank, form->stages[static_cast<size_t>(stage) - 1], grid, made, &sent);
      const std::vector<Value> pieces = PiecesOf(*form, call, run.rows, rank);
      std::vector<const Value*> inputs, received;
      if (stage == 0 || now.reads_inputs)
        for (size_t i = 0; i < pieces.size(); ++i) inputs.push_back(call.inputs[i] ? &pieces[i] : nullptr);
      for (const Value& value : held) received.push_back(&value);
      std::vector<Value>& results = next[static_cast<size_t>(rank)];
      results.resize(is_last ? ResultsOf(call.node).size() : ValuesMade(now, grid, rank));
      const StageCall stage_call{
          .form = *form,
          .node = call.node,
          .input_infos = call.infos,
          .stage = stage,
          .rank = rank,
          .rows = run.rows,
          .result_rows = result_rows,
          .inputs = inputs,
          .received = received,
          .before = HandsOn(now) && rank > 0 ? &next[static_cast<size_t>(rank) - 1].back() : nullptr,
          .context = call.context};
      const Status status = form->run(stage_call, results);
      if (!status.ok()) {
        if (run.failed != nullptr)
          *run.failed = status;
        else
          ADD_FAILURE() << call.node.op << ", stage " << stage << ": " << status.ToString();
        return {};
      }
    }
    made = std::move(next);
  }
  if (run.sent != nullptr) *run.sent = sent;
  return made;
}
inline std::vector<std::vector<Value>> RunStages(Invocation& call, const Split& rows,
                                                 Status* failed = nullptr, int32_t place = 0) {
  return RunStages(call, {.rows = rows, .place = place, .failed = failed});
}

/// NaN is the same as NaN.
inline bool SameScalars(const Scalar& a, const Scalar& b) {
  const bool are_nan = !a.IsString() && !b.IsString() && std::isnan(a.AsDouble()) && std::isnan(b.AsDouble());
  return are_nan || a == b;
}

/// Both have the same cells, of frames also the same columns.
inline bool AreSame(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Value::Kind::kScalar: return SameScalars(a.scalar(), b.scalar());
    case Value::Kind::kMatrix: return Matrix::SameCells(a.matrix(), b.matrix());
    case Value::Kind::kFrame:
      return Frame::SameCells(a.frame(), b.frame()) &&
             a.frame().schema()->ToText() == b.frame().schema()->ToText();
    case Value::Kind::kPanels: break;  // No kernel makes any.
  }
  return false;
}

/// The staged form fails as Operator::run does, on whichever rank the fault lies.
inline void ExpectStagesFailAlike(Invocation& call, int64_t total_rows, int32_t ranks, int32_t place = 0) {
  const Result<std::vector<Value>> whole = call.RunSeveralRows(0, 0, 0);
  ASSERT_FALSE(whole.ok()) << call.node.op;
  Status failed;
  EXPECT_TRUE(RunStages(call, Distribution::SplitRows(total_rows, ranks).split, &failed, place).empty());
  EXPECT_EQ(failed.ToString(), whole.status().ToString()) << call.node.op << ", " << ranks;
  EXPECT_EQ(failed.code(), whole.status().code()) << call.node.op;
}

/// Runs stages through the catalog, as the actor runtime does.
inline auto StageRunner(Invocation& call) {
  return [&call](const StagePlace& at, std::span<const Value* const> given, std::span<Value> outputs) {
    return CatalogKernels().Run({.node = call.node,
                                 .phase = Phase::kStage,
                                 .inputs = given,
                                 .input_infos = call.infos,
                                 .context = call.context,
                                 .op = call.op,
                                 .stage = &at},
                                outputs);
  };
}

/// A process whose panels are all in spill files, as its store has no room.
struct ProcessWithPanels {
  FilesInMemory files;
  std::unique_ptr<PanelStore> store = MakePanelStore(files, /*least_panel_bytes=*/1);
  ProcessWithPanels() { EXPECT_TRUE(store->SetRoom(0).ok()); }
  Value InPanels(const Value& value) const {
    const auto collector = store->Collect(value.shape(), value.IsFrame());
    EXPECT_TRUE(collector->Add(*WithMemoryOfItsOwn(value)).ok());
    return Value(*collector->Finish());
  }
};

inline Result<Value> Whole(const Value& value) {
  return value.IsPanels() ? value.panels()->Rows(0, value.shape().rows) : value;
}

/// One process that has the inputs in panels gives what Operator::run makes of all.
inline void ExpectPanelsMatch(Invocation& call, const Split& rows, int32_t place,
                              const std::vector<Value>& whole) {
  const StagedForm& form = *StagedFormAt(*call.op, place);
  if (!MakesPanels(form) || rows.cuts.size() < 3) return;
  const Result<std::vector<ValueInfo>> inferred = call.InferWith(call.scalars);
  ASSERT_TRUE(inferred.ok());
  const ProcessWithPanels process;
  std::vector<Value> inputs(call.inputs.size());
  std::vector<const Value*> pointers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (call.inputs[i]) inputs[i] = *call.inputs[i];
    const bool by_rows = InputUseOf(form, call.node, call.infos, static_cast<int>(i)) == InputUse::kRows;
    if (call.inputs[i] && by_rows && !inputs[i].IsScalar()) inputs[i] = process.InPanels(inputs[i]);
    pointers.push_back(call.inputs[i] ? &inputs[i] : nullptr);
  }
  const auto panels = static_cast<int32_t>(rows.cuts.size()) - 1;
  Split result_rows;
  if (form.result == StagedResult::kSameRows) result_rows = rows;
  if (form.result == StagedResult::kRows)
    result_rows = Distribution::SplitRows((*inferred)[0].shape.rows, panels).split;
  std::vector<Value> results(inferred->size());
  const Status status = RunStagesInPanels({.form = form,
                                           .node = call.node,
                                           .infos = call.infos,
                                           .rows = rows,
                                           .result_rows = result_rows,
                                           .store = *process.store,
                                           .run_stage = StageRunner(call)},
                                          pointers, results);
  ASSERT_TRUE(status.ok()) << call.node.op << ": " << status.ToString();
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].IsPanels(), IsCutByRows(form, i)) << call.node.op;
    const Result<Value> all = Whole(results[i]);
    ASSERT_TRUE(all.ok()) << all.status().ToString();
    EXPECT_EQ(all->shape(), whole[i].shape()) << call.node.op << " " << i;
    EXPECT_TRUE(AreSame(*all, whole[i])) << call.node.op << " " << i << " in " << panels << " panels";
  }
}

/// Each part in two, at a granule.
inline Split InHalves(const Split& rows) {
  const int64_t granule = Granule(rows.Length());
  Split halves{.cuts = {0}};
  for (size_t part = 0; part + 1 < rows.cuts.size(); ++part) {
    const int64_t begin = rows.cuts[part], end = rows.cuts[part + 1];
    halves.cuts.push_back(std::clamp((begin + end) / 2 / granule * granule, begin, end));
    halves.cuts.push_back(end);
  }
  return halves;
}

/// What a rank receives of the stage before, in panels: parts of other ranks one after the other.
inline std::vector<Value> PanelsReceivedBy(int32_t rank, const Stage& stage,
                                           const std::vector<std::vector<Value>>& made,
                                           const ProcessWithPanels& process, int32_t panels) {
  const auto ranks = static_cast<int32_t>(made.size());
  std::vector<Value> received;
  std::vector<size_t> places(made.size(), 0);
  for (const Reach reach : stage.outputs) {
    const auto take = [&](int32_t from) {
      const size_t i = places[static_cast<size_t>(from)] + static_cast<size_t>(rank);
      const Value& value = made[static_cast<size_t>(from)][i];
      EXPECT_TRUE(IsKeptInPanels(stage, ranks, from, i));
      if (from == rank) {
        received.push_back(value);
        return;
      }
      const size_t of_each = PartsOfEachPanel(stage, ranks, from, i, panels);
      PartsCollector collector(*process.store, of_each);
      for (size_t part = 0; part < of_each * static_cast<size_t>(panels); ++part)
        EXPECT_TRUE(collector.Add(*PartsIn(value)->Take(part)).ok());
      received.push_back(*collector.Finish());
    };
    if (reach == Reach::kHere)
      received.push_back(made[static_cast<size_t>(rank)][places[static_cast<size_t>(rank)]]);
    if (reach == Reach::kFromLast) take(ranks - 1);
    if (reach == Reach::kParts)
      for (int32_t from = 0; from < ranks; ++from) take(from);
    if (reach == Reach::kAll) {
      std::vector<const Value*> of_all;
      for (size_t from = 0; from < made.size(); ++from) of_all.push_back(&made[from][places[from]]);
      received.push_back(*JoinRows(of_all));
    }
    for (int32_t from = 0; from < ranks; ++from)
      places[static_cast<size_t>(from)] += ValuesOfRank(reach, ranks, from);
  }
  return received;
}

/// So do several ranks, each of which has its rows in two panels.
inline void ExpectSharedPanelsMatch(Invocation& call, const Split& rows, int32_t place,
                                    const std::vector<Value>& whole) {
  constexpr int32_t kPanels = 2;
  const StagedForm& form = *StagedFormAt(*call.op, place);
  if (!CanShareInPanels(form) || rows.cuts.size() < 3) return;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (call.inputs[i] && InputUseOf(form, call.node, call.infos, static_cast<int>(i)) == InputUse::kRows &&
        call.inputs[i]->shape().rows != rows.Length())
      return;
  const Result<std::vector<ValueInfo>> inferred = call.InferWith(call.scalars);
  ASSERT_TRUE(inferred.ok());
  const auto ranks = static_cast<int32_t>(rows.cuts.size()) - 1;
  const Split halves = InHalves(rows);
  Split result_rows;
  if (form.result == StagedResult::kSameRows) result_rows = halves;
  if (form.result == StagedResult::kRows)
    result_rows = InHalves(Distribution::SplitRows((*inferred)[0].shape.rows, ranks).split);
  const std::vector<ProcessWithPanels> processes(static_cast<size_t>(ranks));
  std::vector<std::vector<Value>> made(static_cast<size_t>(ranks));
  for (size_t stage = 0; stage < form.stages.size(); ++stage) {
    const Stage& now = form.stages[stage];
    std::vector<std::vector<Value>> next(static_cast<size_t>(ranks));
    for (int32_t rank = 0; rank < ranks; ++rank) {
      const ProcessWithPanels& process = processes[static_cast<size_t>(rank)];
      std::vector<Value> inputs = PiecesOf(form, call, rows, rank), received;
      if (stage > 0) received = PanelsReceivedBy(rank, form.stages[stage - 1], made, process, kPanels);
      std::vector<const Value*> given, taken;
      for (size_t i = 0; now.reads_inputs && i < inputs.size(); ++i) {
        const bool by_rows = InputUseOf(form, call.node, call.infos, static_cast<int>(i)) == InputUse::kRows;
        if (call.inputs[i] && by_rows && !inputs[i].IsScalar()) inputs[i] = process.InPanels(inputs[i]);
        given.push_back(call.inputs[i] ? &inputs[i] : nullptr);
      }
      for (const Value& value : received) taken.push_back(&value);
      std::vector<Value>& outputs = next[static_cast<size_t>(rank)];
      outputs.resize(stage + 1 == form.stages.size() ? inferred->size() : 0);
      for (const Reach reach : now.outputs) outputs.resize(outputs.size() + ValuesOfRank(reach, ranks, rank));
      const Status status = RunStageInPanels(
          {.form = form,
           .node = call.node,
           .infos = call.infos,
           .rows = halves,
           .result_rows = result_rows,
           .ranks = ranks,
           .rank = rank,
           .store = *process.store,
           .run_stage = StageRunner(call)},
          static_cast<int32_t>(stage), given, taken,
          HandsOn(now) && rank > 0 ? &next[static_cast<size_t>(rank) - 1].back() : nullptr, outputs);
      ASSERT_TRUE(status.ok()) << call.node.op << ", stage " << stage << ": " << status.ToString();
    }
    made = std::move(next);
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    std::vector<Value> parts;
    std::vector<const Value*> pointers;
    for (const std::vector<Value>& of_rank : made) {
      EXPECT_EQ(of_rank[i].IsPanels(), IsCutByRows(form, i)) << call.node.op;
      const Result<Value> part = Whole(of_rank[i]);
      ASSERT_TRUE(part.ok()) << part.status().ToString();
      parts.push_back(*part);
    }
    if (!IsCutByRows(form, i)) {
      for (const Value& part : parts) EXPECT_TRUE(AreSame(part, whole[i])) << call.node.op << " " << i;
      continue;
    }
    for (const Value& part : parts) pointers.push_back(&part);
    const Result<Value> all = JoinRows(pointers);
    ASSERT_TRUE(all.ok()) << all.status().ToString();
    EXPECT_EQ(all->shape(), whole[i].shape()) << call.node.op << " " << i;
    EXPECT_TRUE(AreSame(*all, whole[i])) << call.node.op << " " << i << " on " << ranks << " ranks in panels";
  }
}

/// The staged form gives, rank by rank, the rows of what Operator::run makes of all, and so does one process
/// whose inputs are panels, and several of these.
inline void ExpectStagesMatch(Invocation& call, const Split& rows, int32_t place = 0) {
  const auto ranks = static_cast<int32_t>(rows.cuts.size()) - 1;
  const Result<std::vector<Value>> whole = call.RunSeveralRows(0, 0, 0);
  ASSERT_TRUE(whole.ok()) << call.node.op << ": " << whole.status().ToString();
  const std::vector<std::vector<Value>> parts = RunStages(call, rows, nullptr, place);
  ASSERT_EQ(parts.size(), static_cast<size_t>(ranks));
  const StagedForm& form = *StagedFormAt(*call.op, place);
  ExpectPanelsMatch(call, rows, place, *whole);
  ExpectSharedPanelsMatch(call, rows, place, *whole);
  for (size_t i = 0; i < whole->size(); ++i) {
    std::vector<const Value*> pieces;
    for (const std::vector<Value>& of_rank : parts) pieces.push_back(&of_rank[i]);
    if (form.result == StagedResult::kEach || (i > 0 && !form.all_alike)) {
      for (const Value* piece : pieces) EXPECT_TRUE(AreSame(*piece, (*whole)[i])) << call.node.op << " " << i;
      continue;
    }
    const Split cuts = form.result == StagedResult::kSameRows
                           ? rows
                           : Distribution::SplitRows((*whole)[i].shape().rows, ranks).split;
    for (int32_t rank = 0; form.result != StagedResult::kUneven && rank < ranks; ++rank)
      EXPECT_EQ(pieces[static_cast<size_t>(rank)]->shape().rows, cuts.End(rank) - cuts.Begin(rank))
          << call.node.op << " of rank " << rank;
    const Result<Value> all = JoinRows(pieces);
    ASSERT_TRUE(all.ok()) << all.status().ToString();
    EXPECT_EQ(all->shape(), (*whole)[i].shape()) << call.node.op;
    EXPECT_TRUE(AreSame(*all, (*whole)[i])) << call.node.op << ", " << ranks;
  }
}

/// The same for `ranks` ranks at the usual cuts.
inline void ExpectStagesMatch(Invocation& call, int64_t total_rows, int32_t ranks, int32_t place = 0) {
  ExpectStagesMatch(call, Distribution::SplitRows(total_rows, ranks).split, place);
}

}  // namespace heddle::ops::testing
