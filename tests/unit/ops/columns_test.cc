// SPDX-License-Identifier: Apache-2.0
// Operators by columns: what each rank makes of its columns are the columns of what one makes of all.
#include "ops/base/columns.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/environment/random.h"
#include "ops/cells/column_pieces.h"
#include "ops/cells/move_cells.h"
#include "ops/frame/row_pieces.h"
#include "tests/support/all_plans.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::CsrPanel;
using testing::Invocation;

Matrix Cells(int64_t rows, int64_t columns, uint32_t seed) {
  return testing::RandomCells(rows, columns, seed, 1);
}

// Uneven cuts, ranks without columns among them; the first seeds are special.
Split RandomCuts(int64_t columns, int32_t ranks, uint64_t seed) {
  Split split = Distribution::SplitRows(columns, ranks).split;
  split.axis = Axis::kColumns;
  SeededRandom random(seed);
  for (int32_t rank = 1; rank < ranks && seed > 0; ++rank) {
    int64_t& cut = split.cuts[static_cast<size_t>(rank)];
    cut = seed == 1   ? 0
          : seed == 2 ? columns
          : seed == 3 ? std::min<int64_t>(rank, columns)
                      : static_cast<int64_t>(random.Below(static_cast<uint64_t>(columns) + 1));
  }
  std::sort(split.cuts.begin(), split.cuts.end());
  return split;
}

// The part of a value that is cut so.
Value PartOf(const Value& value, const Split& split, int32_t rank) {
  const int64_t begin = split.Begin(rank), end = split.End(rank);
  return split.axis == Axis::kColumns ? *ColumnsOfValue(value, begin, end) : *SliceRows(value, begin, end);
}

// Runs the forms of the call by `axis` that turn or keep it on these cuts of what it reads in parts.
void ExpectPartsMatch(Invocation& call, const Split& cuts) {
  const Result<std::vector<Value>> whole = call.RunSeveralRows(0, 0, 0);
  ASSERT_TRUE(whole.ok()) << call.node.op << ": " << whole.status().ToString();
  int forms = 0;
  for (const auto& [place, form] : StagedFormsOf(*call.op, call.node, call.infos, cuts.axis)) {
    if (cuts.axis == Axis::kRows && form->result != StagedResult::kTurned) continue;
    if (form->stages.size() > 1) continue;  // column_stages_test.cc
    ++forms;
    Split result = cuts;
    if (form->result == StagedResult::kTurned)
      result.axis = cuts.axis == Axis::kRows ? Axis::kColumns : Axis::kRows;
    for (int32_t rank = 0; rank < static_cast<int32_t>(cuts.cuts.size()) - 1; ++rank) {
      std::vector<Value> pieces(call.inputs.size());
      std::vector<const Value*> inputs;
      for (size_t i = 0; i < call.inputs.size(); ++i) {
        if (call.inputs[i])
          pieces[i] = InputUseOf(*form, call.node, call.infos, static_cast<int>(i)) == InputUse::kRows
                          ? PartOf(*call.inputs[i], cuts, rank)
                          : *call.inputs[i];
        inputs.push_back(call.inputs[i] ? &pieces[i] : nullptr);
      }
      const StagePlace at{.form = *form, .rank = rank, .rows = cuts, .result_rows = result};
      Value made;
      const Status status = CatalogKernels().Run({.node = call.node,
                                                  .phase = Phase::kStage,
                                                  .inputs = inputs,
                                                  .input_infos = call.infos,
                                                  .context = call.context,
                                                  .op = call.op,
                                                  .stage = &at},
                                                 {&made, 1});
      ASSERT_TRUE(status.ok()) << call.node.op << ": " << status.ToString();
      const Matrix expected = PartOf((*whole)[0], result, rank).matrix();
      EXPECT_EQ(made.matrix().shape(), expected.shape()) << call.node.op;
      EXPECT_EQ(made.matrix().storage(), expected.storage()) << call.node.op;
      EXPECT_EQ(made.matrix().element_type(), expected.element_type()) << call.node.op;
      EXPECT_TRUE(Matrix::SameCells(made.matrix(), expected))
          << call.node.op << fmt::format(" {}", (*whole)[0].shape()) << ", rank " << rank << " of "
          << Distribution{.kind = Distribution::Kind::kSplit, .split = cuts}.ToText();
    }
  }
  EXPECT_GT(forms, 0) << call.node.op << " has no such form";
}

void ExpectColumnsMatch(Invocation call, int64_t columns) {
  const uint64_t cuts = testing_support::RunsAllPlans() ? 6 : 2;
  for (uint64_t seed = 0; seed < cuts; ++seed)
    for (const int32_t ranks : {3, 7}) ExpectPartsMatch(call, RandomCuts(columns, ranks, seed));
}

void ForForms(const Matrix& x, const std::function<void(const Matrix& x)>& body) {
  for (const Matrix& form : {x, *ToSparse(x), CsrPanel(x)}) body(form);
}

TEST(ColumnsTest, CellWiseOperatorsWithEveryKindOfOperand) {
  for (const int64_t rows : {1, 5, 70}) {
    for (const int64_t columns : {2, 9, 130}) {
      const Matrix y = Cells(rows, columns, 2), row = Cells(1, columns, 3), column = Cells(rows, 1, 4);
      ForForms(testing::RandomCells(rows, columns, 1), [&](const Matrix& x) {
        for (const char* op : {"+", "*", "/", "^", "<", "min", "%%"}) {
          if (FindOperator(op)->binary == std::nullopt) continue;
          ExpectColumnsMatch(Invocation(op, {Value(x), Value(y)}), columns);
          ExpectColumnsMatch(Invocation(op, {Value(x), Value(row)}), columns);
          ExpectColumnsMatch(Invocation(op, {Value(x), Value(column)}), columns);
          ExpectColumnsMatch(Invocation(op, {Value(x), Value(Scalar(2.5))}), columns);
          ExpectColumnsMatch(Invocation(op, {Value(Scalar(2.5)), Value(x)}), columns);
        }
        for (const char* op : {"abs", "exp", "log", "sigmoid", "sqrt", "!"})
          ExpectColumnsMatch(Invocation(op, {Value(x)}), columns);
        ExpectColumnsMatch(Invocation("ifelse", {Value(x), Value(y), Value(Scalar(0.0))}), columns);
        ExpectColumnsMatch(Invocation("replace", {Value(x), Value(Scalar(0.0)), Value(Scalar(7.0))}),
                           columns);
      });
    }
  }
}

// The order of a column's sum depends on the number of all columns (8 or fewer, heights of panels), not on
// how many of them a rank has.
TEST(ColumnsTest, AggregatesOfColumns) {
  for (const char* op : {"colSums", "colMeans", "colMins", "colMaxs", "colProds", "colVars", "colSds"}) {
    for (const int64_t rows : {1, 64, 1000, 9001}) {
      for (const int64_t columns : {1, 3, 8, 9, 40, 3000}) {
        if (rows * columns > 300'000) continue;
        SCOPED_TRACE(::testing::Message() << op << " of " << rows << "x" << columns);
        ForForms(testing::RandomCells(rows, columns, 5),
                 [&](const Matrix& x) { ExpectColumnsMatch(Invocation(op, {Value(x)}), columns); });
      }
    }
  }
}

// Sums that leave the range of doubles on their way have the same panels, too.
TEST(ColumnsTest, SumsBeyondTheLargestDouble) {
  for (const char* op : {"colSums", "colMeans", "colVars"}) {
    for (const int64_t columns : {3, 12}) {
      Matrix x = Cells(5000, columns, 7);
      for (int64_t k = 0; k < x.cells(); ++k)
        if (k % 11 != 0) x.mutable_data()[k] = k % 2 == 0 ? 1.5e308 : -1.5e308;
      ExpectColumnsMatch(Invocation(op, {Value(x)}), columns);
    }
  }
}

TEST(ColumnsTest, ProductsByColumnsOfTheRightOperand) {
  for (const auto& [rows, inner] : {std::pair<int64_t, int64_t>{1, 40}, {5, 70'000}, {40, 33}}) {
    for (const int64_t columns : {1, 5, 8, 9, 75}) {
      SCOPED_TRACE(::testing::Message() << rows << "x" << inner << " %*% " << inner << "x" << columns);
      ForForms(testing::RandomCells(rows, inner, 8), [&](const Matrix& a) {
        ForForms(testing::RandomCells(inner, columns, 9), [&](const Matrix& b) {
          for (const uint64_t seed : {0, 3, 5})
            if (Invocation call("%*%", {Value(a), Value(b)}); columns < 20 || inner < 100)
              ExpectPartsMatch(call, RandomCuts(columns, 3, seed));
        });
      });
    }
  }
}

TEST(ColumnsTest, WhatMovesOrScansRows) {
  for (const int64_t columns : {2, 9, 70}) {
    const Matrix v = Cells(3, columns, 11);
    ForForms(testing::RandomCells(200, columns, 10), [&](const Matrix& x) {
      for (const char* op : {"cumsum", "cumprod", "cummin", "cummax", "rev"})
        ExpectColumnsMatch(Invocation(op, {Value(x)}), columns);
      ExpectColumnsMatch(Invocation("roll", {Value(x), Value(Scalar(3))}), columns);
      ExpectColumnsMatch(Invocation("rbind", {Value(x), Value(v), Value(x)}), columns);
      const Value first(Scalar(4)), last(Scalar(6));
      ExpectColumnsMatch(Invocation("index", {Value(x), first, last}), columns);
      ExpectColumnsMatch(Invocation("indexAssign", {Value(x), Value(v), first, last}), columns);
      ExpectColumnsMatch(Invocation("indexAssign", {Value(x), Value(Scalar(5.0)), first, last}), columns);
    });
  }
}

TEST(ColumnsTest, ATransposeTurnsWhatEachRankHas) {
  for (const int64_t rows : {1, 6, 130}) {
    for (const int64_t columns : {1, 7, 64}) {
      ForForms(testing::RandomCells(rows, columns, 12), [&](const Matrix& x) {
        for (uint64_t seed = 0; seed < 6; ++seed) {
          Invocation call("t", {Value(x)});
          ExpectPartsMatch(call, RandomCuts(columns, 3, seed));
          Split by_rows = RandomCuts(rows, 3, seed);
          by_rows.axis = Axis::kRows;
          ExpectPartsMatch(call, by_rows);
        }
      });
    }
  }
}

// Of rows that are longer than a chunk of columns: every rank makes the leaves that it has.
TEST(ColumnsTest, FullAggregatesOfLongRows) {
  constexpr int64_t kChunk = kColumnChunk;
  for (const char* op : {"sum", "mean", "min", "max", "prod", "var", "sd"}) {
    for (const int64_t columns : {kChunk + 1, 3 * kChunk, 5 * kChunk + 77}) {
      Matrix x = testing::RandomCells(3, columns, 15, 3);
      if (op == std::string_view("prod"))
        for (int64_t k = 0; k < x.cells(); ++k) x.mutable_data()[k] = 1 + x.data()[k] * 1e-5;
      Matrix large = x;
      for (int64_t k = 0; k < large.cells(); k += 3)
        large.mutable_data()[k] = k % 2 == 0 ? 1.6e308 : -1.6e308;
      for (const Matrix& form : {x, *ToSparse(x), CsrPanel(x), large}) {
        Invocation call(op, {Value(form)});
        const Result<std::vector<Value>> whole = call.RunSeveralRows(0, 0, 0);
        ASSERT_TRUE(whole.ok());
        const auto forms = StagedFormsOf(*call.op, call.node, call.infos, Axis::kColumns);
        ASSERT_EQ(forms.size(), 1u);  // Another one is for shorter rows.
        const Split cuts{.axis = Axis::kColumns,
                         .cuts = {0, 0, kChunk, std::min(4 * kChunk, columns), columns}};
        std::vector<Value> made(4);
        for (int32_t rank = 0; rank < 4; ++rank) {
          const Value part = PartOf(Value(form), cuts, rank);
          const Value* const inputs[] = {&part};
          const StagePlace at{.form = *forms[0].second, .rank = rank, .rows = cuts, .result_rows = cuts};
          const Status status = CatalogKernels().Run({.node = call.node,
                                                      .phase = Phase::kStage,
                                                      .inputs = inputs,
                                                      .input_infos = call.infos,
                                                      .context = call.context,
                                                      .op = call.op,
                                                      .stage = &at},
                                                     {&made[static_cast<size_t>(rank)], 1});
          ASSERT_TRUE(status.ok()) << status.ToString();
        }
        const Value* const lists[] = {&made[0], &made[1], &made[2], &made[3]};
        const Result<Value> received = JoinRows(lists);
        ASSERT_TRUE(received.ok()) << received.status().ToString();
        const Value* const inputs[] = {&*received};
        const StagePlace at{.form = *forms[0].second, .stage = 1, .rows = cuts, .result_rows = cuts};
        Value result;
        ASSERT_TRUE(CatalogKernels()
                        .Run({.node = call.node,
                              .phase = Phase::kStage,
                              .inputs = inputs,
                              .input_infos = call.infos,
                              .context = call.context,
                              .op = call.op,
                              .stage = &at},
                             {&result, 1})
                        .ok());
        EXPECT_EQ(result.scalar().ToText(), (*whole)[0].scalar().ToText()) << op << " of " << columns;
      }
    }
  }
}

// What every rank makes of its columns in floats.
TEST(ColumnsTest, SinglePrecision) {
  Matrix floats = *Matrix::Dense(50, 20, ElementType::kFloat32);
  for (int64_t k = 0; k < floats.cells(); ++k)
    floats.mutable_data<float>()[k] = static_cast<float>(k % 37) / 7.0f;
  const auto single = [](Invocation call) {
    for (ValueInfo& info : call.infos)
      if (info.IsMatrix()) info.element_type = ElementType::kFloat32;
    return call;
  };
  for (const char* op : {"exp", "abs", "cumsum", "rev"})
    for (const uint64_t seed : {0, 3, 5}) {
      Invocation call = single(Invocation(op, {Value(floats)}));
      ExpectPartsMatch(call, RandomCuts(20, 3, seed));
    }
}

TEST(ColumnsTest, PiecesAreJoinedSideBySide) {
  ForForms(testing::RandomCells(20, 30, 14), [&](const Matrix& x) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const Split cuts = RandomCuts(30, 4, seed);
      std::vector<Value> pieces;
      for (int32_t rank = 0; rank < 4; ++rank) pieces.push_back(PartOf(Value(x), cuts, rank));
      std::vector<const Value*> pointers;
      for (const Value& piece : pieces) pointers.push_back(&piece);
      const Result<Value> whole = JoinColumns(pointers);
      ASSERT_TRUE(whole.ok()) << whole.status().ToString();
      EXPECT_EQ(whole->matrix().storage(), x.storage());
      EXPECT_TRUE(Matrix::SameCells(whole->matrix(), x));
      const Result<Value> dense = JoinColumnsAs(pointers, ValueInfo::OfMatrix(x.shape()));
      ASSERT_TRUE(dense.ok());
      EXPECT_FALSE(dense->matrix().IsSparse());
      EXPECT_TRUE(Matrix::SameCells(dense->matrix(), x));
    }
  });
  const Value scalar(Scalar(1.0)), matrix(Cells(2, 2, 1)), other(Cells(3, 2, 1));
  EXPECT_FALSE(ColumnsOfValue(scalar, 0, 1).ok());
  EXPECT_FALSE(ColumnsOfValue(matrix, 1, 3).ok());
  const Value* const unlike[] = {&matrix, &other};
  EXPECT_FALSE(JoinColumns(unlike).ok());
  EXPECT_FALSE(JoinColumns({}).ok());
}

}  // namespace
}  // namespace heddle::ops
