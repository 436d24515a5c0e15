// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/base/stages.h"
#include "ops/frame/row_pieces.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops::testing {

/// The inputs of the call that it reads by rows, as rank `rank` has them; the others whole.
inline std::vector<Value> PiecesOf(const Invocation& call, const Split& rows, int32_t rank) {
  std::vector<Value> pieces(call.inputs.size());
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i]) continue;
    const bool by_rows = InputUseOf(call.node, call.infos, static_cast<int>(i)) == InputUse::kRows;
    pieces[i] = by_rows ? *SliceRows(*call.inputs[i], rows.Begin(rank), rows.End(rank)) : *call.inputs[i];
  }
  return pieces;
}

/// An operator in its staged form, as the ranks run it that have the inputs cut at `rows`: the results by
/// rank. Fails the test, and gives none, where a stage fails; its status is left in `failed` where that is
/// given. `place`: which of the forms of the operator.
inline std::vector<std::vector<Value>> RunStages(Invocation& call, const Split& rows,
                                                 Status* failed = nullptr, int32_t place = 0) {
  const Result<std::vector<ValueInfo>> inferred = call.InferWith(call.scalars);
  EXPECT_TRUE(inferred.ok()) << inferred.status().ToString();
  if (!inferred.ok()) return {};
  call.SetInfos(*inferred);
  const StagedForm* const form = StagedFormAt(*call.op, place);
  EXPECT_TRUE(form != nullptr && (form->applies == nullptr || form->applies(call.node, call.infos)))
      << call.node.op;
  if (form == nullptr) return {};
  const auto ranks = static_cast<int32_t>(rows.cuts.size()) - 1;
  Split result_rows;
  if (form->result == StagedResult::kSameRows) result_rows = rows;
  if (form->result == StagedResult::kRows)
    result_rows = Distribution::SplitRows((*inferred)[0].shape.rows, ranks).split;
  std::vector<std::vector<Value>> made(static_cast<size_t>(ranks));  // By rank: the outputs of a stage.
  for (int32_t stage = 0; stage < static_cast<int32_t>(form->stages.size()); ++stage) {
    const bool is_last = stage + 1 == static_cast<int32_t>(form->stages.size());
    const Stage& now = form->stages[static_cast<size_t>(stage)];
    std::vector<std::vector<Value>> next(static_cast<size_t>(ranks));
    for (int32_t rank = 0; rank < ranks; ++rank) {
      std::vector<Value> held;  // What arrives of outputs that go to all ranks.
      if (stage > 0) {
        const Stage& before = form->stages[static_cast<size_t>(stage) - 1];
        for (size_t o = 0; o < before.outputs.size(); ++o) {
          const size_t place = StageCall::PlaceOf(before, o, ranks);
          switch (before.outputs[o]) {
            case Reach::kNext: break;
            case Reach::kHere: held.push_back(made[static_cast<size_t>(rank)][place]); break;
            case Reach::kAll: {
              std::vector<const Value*> of_all;
              for (const std::vector<Value>& of_rank : made) of_all.push_back(&of_rank[place]);
              const Result<Value> all = JoinRows(of_all);
              EXPECT_TRUE(all.ok()) << all.status().ToString();
              held.push_back(all.ok() ? *all : Value());
              break;
            }
            case Reach::kParts:
              for (const std::vector<Value>& of_rank : made)
                held.push_back(of_rank[place + static_cast<size_t>(rank)]);
          }
        }
      }
      const std::vector<Value> pieces = PiecesOf(call, rows, rank);
      std::vector<const Value*> inputs, received;
      if (stage == 0 || now.reads_inputs)
        for (size_t i = 0; i < pieces.size(); ++i) inputs.push_back(call.inputs[i] ? &pieces[i] : nullptr);
      for (const Value& value : held) received.push_back(&value);
      const size_t outputs =
          is_last ? ResultsOf(call.node).size() : StageCall::PlaceOf(now, now.outputs.size(), ranks);
      std::vector<Value>& results = next[static_cast<size_t>(rank)];
      results.resize(outputs);
      const StageCall stage_call{
          .form = *form,
          .node = call.node,
          .input_infos = call.infos,
          .stage = stage,
          .rank = rank,
          .rows = rows,
          .result_rows = result_rows,
          .inputs = inputs,
          .received = received,
          .before = HandsOn(now) && rank > 0 ? &next[static_cast<size_t>(rank) - 1].back() : nullptr,
          .context = call.context};
      const Status status = form->run(stage_call, results);
      if (!status.ok()) {
        if (failed != nullptr)
          *failed = status;
        else
          ADD_FAILURE() << call.node.op << ", stage " << stage << ": " << status.ToString();
        return {};
      }
    }
    made = std::move(next);
  }
  return made;
}

/// The staged form gives, rank by rank, the rows of what Operator::run makes of all: for `ranks` ranks, at
/// the usual cuts.
inline void ExpectStagesMatch(Invocation& call, int64_t total_rows, int32_t ranks, int32_t place = 0) {
  const Result<std::vector<Value>> whole = call.RunSeveralRows(0, 0, 0);
  ASSERT_TRUE(whole.ok()) << call.node.op << ": " << whole.status().ToString();
  const Split rows = Distribution::SplitRows(total_rows, ranks).split;
  const std::vector<std::vector<Value>> parts = RunStages(call, rows, nullptr, place);
  ASSERT_EQ(parts.size(), static_cast<size_t>(ranks));
  const StagedForm& form = *StagedFormAt(*call.op, place);
  for (size_t i = 0; i < whole->size(); ++i) {
    std::vector<const Value*> pieces;
    for (const std::vector<Value>& of_rank : parts) pieces.push_back(&of_rank[i]);
    if (form.result == StagedResult::kEach) {
      for (const Value* piece : pieces)
        EXPECT_TRUE((*whole)[i].IsScalar() ? piece->scalar() == (*whole)[i].scalar()
                                           : Matrix::SameCells(piece->matrix(), (*whole)[i].matrix()))
            << call.node.op;
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
    if (!all->IsMatrix()) continue;
    EXPECT_EQ(all->matrix().shape(), (*whole)[i].matrix().shape()) << call.node.op;
    EXPECT_TRUE(Matrix::SameCells(all->matrix(), (*whole)[i].matrix())) << call.node.op << ", " << ranks;
  }
}

}  // namespace heddle::ops::testing
