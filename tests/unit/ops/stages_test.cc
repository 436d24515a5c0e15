// SPDX-License-Identifier: Apache-2.0
// Operators that ranks compute together in stages give the rows of the operator that runs whole.
#include <optional>

#include "ops/cells/move_cells.h"
#include "tests/unit/ops/run_stages.h"

namespace heddle::ops {
namespace {

using testing::Csr;
using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;

constexpr int64_t kSizes[] = {0, 1, 5, 64, 130, 1000};
constexpr int32_t kRanks[] = {1, 2, 3, 8};

TEST(StagesTest, RevTurnsTheRowsRound) {
  for (const int64_t rows : kSizes)
    for (const Matrix& form : Forms(RandomCells(rows, 3, static_cast<uint32_t>(rows))))
      for (const int32_t ranks : kRanks) {
        Invocation call("rev", {Value(form)});
        testing::ExpectStagesMatch(call, rows, ranks);
      }
}

TEST(StagesTest, RowsWithinBoundsComeFromTheRanksThatHaveThem) {
  const auto at = [](int64_t bound) { return Value(Scalar(bound)); };
  for (const int64_t rows : {1, 5, 130, 1000})
    for (const Matrix& form : Forms(RandomCells(rows, 4, static_cast<uint32_t>(rows))))
      for (const auto& [first, last] :
           {std::pair<int64_t, int64_t>{1, rows}, {rows, rows}, {(rows + 1) / 2, rows}, {1, (rows + 1) / 2}})
        for (const int32_t ranks : kRanks)
          for (const int32_t form_place : {0, 1}) {
            Invocation call("index", {Value(form), at(first), at(last)});
            testing::ExpectStagesMatch(call, rows, ranks, form_place);
            Invocation columns("index", {Value(form), at(first), at(last), at(2), at(3)});
            testing::ExpectStagesMatch(columns, rows, ranks, form_place);
          }
}

TEST(StagesTest, BoundsOutsideFailOnEveryRank) {
  Invocation call("index",
                  {Value(RandomCells(10, 2, 1)), Value(Scalar(int64_t{4})), Value(Scalar(int64_t{12}))});
  call.scalars = {nullptr, nullptr, nullptr};
  Status failed;
  EXPECT_TRUE(testing::RunStages(call, Distribution::SplitRows(10, 3).split, &failed, 2).empty());
  EXPECT_EQ(failed.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(failed.message(), "index [4:12,] is out of range for a 10x2 matrix");
}

TEST(StagesTest, AssignmentsToRowsAreMadeByTheRanksThatHaveThem) {
  const auto at = [](int64_t bound) { return Value(Scalar(bound)); };
  for (const int64_t rows : {1, 130, 1000})
    for (const Matrix& form : Forms(RandomCells(rows, 4, 7)))
      for (const auto& [first, last] :
           {std::pair<int64_t, int64_t>{1, rows}, {rows, rows}, {(rows + 1) / 2, rows}, {1, (rows + 1) / 2}})
        for (const int workers : {1, 2, 3, 8}) {
          const Matrix cells = RandomCells(last - first + 1, 2, 9, 1);
          Invocation matrix("indexAssign", {Value(form), Value(cells), at(first), at(last), at(2), at(3)});
          matrix.ExpectPiecesMatch(workers);
          Invocation scalar("indexAssign", {Value(form), Value(Scalar(5.0)), at(first), at(last)});
          scalar.ExpectPiecesMatch(workers);
        }
}

TEST(StagesTest, TransposesReshapesAndRollsSendEachCellOnce) {
  for (const int64_t rows : {1, 5, 130, 1000})
    for (const Matrix& form : Forms(RandomCells(rows, 12, 3)))
      for (const int32_t ranks : kRanks) {
        Invocation transpose("t", {Value(form)});
        testing::ExpectStagesMatch(transpose, rows, ranks);
        for (const int64_t shift : {int64_t{0}, int64_t{1}, int64_t{-3}, rows - 1, 5 * rows + 2}) {
          Invocation roll("roll", {Value(form), Value(Scalar(shift))});
          testing::ExpectStagesMatch(roll, rows, ranks);
        }
        if (form.IsSparse()) continue;
        for (const int64_t columns : {int64_t{1}, int64_t{4}, 3 * rows}) {
          Invocation reshape("matrix",
                             {Value(form), Value(Scalar(rows * 12 / columns)), Value(Scalar(columns))});
          testing::ExpectStagesMatch(reshape, rows, ranks, 1);
        }
      }
}

TEST(StagesTest, TrianglesOfOnesKnowWhetherAllIsZero) {
  for (const int64_t rows : kSizes)
    for (const int zero_of : {2, 1000000})
      for (const char* op : {"upper.tri", "lower.tri"})
        for (const bool values : {false, true})
          for (const int32_t ranks : kRanks) {
            Invocation call(
                op, {Value(RandomCells(rows, 9, 4, zero_of)), Value(Scalar(true)), Value(Scalar(values))});
            testing::ExpectStagesMatch(call, rows, ranks);
          }
}

TEST(StagesTest, DiagonalsAreMadeRowByRow) {
  for (const int64_t rows : {1, 5, 130, 1000})
    for (const int64_t columns : {int64_t{1}, rows})
      for (const Matrix& form : Forms(RandomCells(rows, columns, 5)))
        for (const int workers : {1, 2, 3, 8}) {
          Invocation call("diag", {Value(form)});
          call.ExpectPiecesMatch(workers);
        }
}

// Weights add up by cell and panel on the ranks that have them, then along the tree.
TEST(StagesTest, TablesAddUpWhereTheirRowsAre) {
  for (const int64_t rows : {1, 5, 130, 1000, 5000}) {
    Matrix a = *Matrix::Dense(rows, 1), b = *Matrix::Dense(rows, 1), w = RandomCells(rows, 1, 6, 1);
    for (int64_t i = 0; i < rows; ++i) {
      a.mutable_data()[i] = static_cast<double>(1 + i * 7 % 40);
      b.mutable_data()[i] = static_cast<double>(1 + i * 3 % 11);
    }
    const Value d1(Scalar(int64_t{30})), d2(Scalar(int64_t{9}));
    const std::optional<Value> weights[] = {std::nullopt, Value(w), Value(Scalar(0.3)), Value(Scalar(1.0))};
    for (const std::optional<Value>& weight : weights)
      for (const int32_t ranks : kRanks) {
        Invocation unsized("table", {Value(a), Value(b), weight});
        testing::ExpectStagesMatch(unsized, rows, ranks, 1);
        Invocation sized("table", {Value(a), Value(b), weight, d1, d2});
        testing::ExpectStagesMatch(sized, rows, ranks, 0);
        Invocation wide(
            "table", {Value(b), Value(a), weight, Value(Scalar(int64_t{200})), Value(Scalar(int64_t{50}))});
        testing::ExpectStagesMatch(wide, rows, ranks, 0);
      }
  }
}

TEST(StagesTest, ABadKeyIsNamedByItsRowOfAll) {
  Matrix a = *FilledMatrix(1000, 1, 1);
  a.mutable_data()[700] = 0.5;
  Invocation call("table", {Value(a), Value(a)});
  Status failed;
  EXPECT_TRUE(testing::RunStages(call, Distribution::SplitRows(1000, 4).split, &failed, 1).empty());
  EXPECT_EQ(failed.message(), "table: key 0.5 at row 701, column 1 is below 1");
}

TEST(StagesTest, ContainsLooksAtTheRowsOfAllRanks) {
  const Matrix x = RandomCells(1000, 2, 8, 1);
  for (const Value& pattern : {Value(Scalar(x.At(999, 0))), Value(Scalar(77.0)), Value(x.Rows(500, 501))})
    for (const int32_t ranks : kRanks) {
      Invocation call("contains", {Value(x), pattern});
      testing::ExpectStagesMatch(call, 1000, ranks);
    }
}

TEST(StagesTest, CellsAreRepeatedRowByRow) {
  const Value rows(Scalar(int64_t{1000})), columns(Scalar(int64_t{3}));
  for (const Matrix& g : {RandomCells(1000, 1, 8, 1), RandomCells(1, 3, 8, 1), RandomCells(1, 1, 8, 1)})
    for (const int workers : {1, 2, 3, 8}) {
      Invocation call("spreadTo", {Value(g), rows, columns});
      call.ExpectPiecesMatch(workers);
    }
}

// Everything, a part, nothing is left; for select lying and standing.
TEST(StagesTest, RemoveEmptyKeepsRowsWhereTheyAre) {
  for (const int64_t rows : kSizes)
    for (const Matrix& form : Forms(RandomCells(rows, 2, static_cast<uint32_t>(rows), 3)))
      for (const char* margin : {"rows", "cols"})
        for (const bool fills : {true, false})
          for (const int32_t ranks : kRanks) {
            const testing::Attributes attributes = {{"margin", Scalar(margin)},
                                                    {"empty.return", Scalar(fills)}};
            const bool is_rows = std::string(margin) == "rows";
            const int32_t place = is_rows ? 0 : 1;
            Invocation call("removeEmpty", {Value(form)}, attributes);
            testing::ExpectStagesMatch(call, rows, ranks, place);
            Invocation none("removeEmpty", {Value(testing::Csr(*FilledMatrix(rows, 2, 0)))}, attributes);
            testing::ExpectStagesMatch(none, rows, ranks, place);
            const int64_t length = is_rows ? rows : 2;
            for (const Matrix& select : {RandomCells(length, 1, 5), RandomCells(1, length, 5)}) {
              Invocation given("removeEmpty", {Value(form), Value(select)}, attributes);
              testing::ExpectStagesMatch(given, rows, ranks, place);
            }
          }
}

TEST(StagesTest, CumsumprodGoesOnFromTheRankBefore) {
  for (const int64_t rows : kSizes)
    for (const Matrix& form : Forms(RandomCells(rows, 2, 3, 1)))
      for (const int32_t ranks : kRanks) {
        Invocation call("cumsumprod", {Value(form)});
        testing::ExpectStagesMatch(call, rows, ranks);
      }
}

// Few different cells, so that extremes stay for long; of products the largest and smallest are far apart.
TEST(StagesTest, AdjointsOfCumulativeOperatorsAreChains) {
  for (const int64_t rows : kSizes)
    for (const char* of : {"cumprod", "cummin", "cummax"})
      for (const int32_t ranks : kRanks) {
        Matrix x = RandomCells(rows, 3, 3, 1);
        for (int64_t i = 0; i < rows; ++i) x.mutable_data()[3 * i] = static_cast<double>(i % 700 / 300);
        Invocation forward(of, {Value(x)});
        Invocation call("cumulative_backward",
                        {Value(x), Value(forward.RunMatrix()), Value(RandomCells(rows, 3, 4, 1))},
                        {{"of", Scalar(of)}});
        testing::ExpectStagesMatch(call, rows, ranks, std::string(of) == "cumprod" ? 0 : 1);
      }
}

TEST(StagesTest, AdjointsOfTablesAreLookedUpByRows) {
  for (const int64_t rows : {1, 130, 1000})
    for (const int32_t ranks : kRanks) {
      Matrix a = *Matrix::Dense(rows, 1);
      for (int64_t i = 0; i < rows; ++i) a.mutable_data()[i] = static_cast<double>(1 + i * 7 % 40);
      const Value keys(a), table(RandomCells(30, 30, 2, 1));
      Invocation by_rows("table_backward", {keys, keys, Value(RandomCells(rows, 1, 3, 1)), table});
      by_rows.ExpectPiecesMatch(ranks);
      Invocation sum("table_backward", {keys, keys, Value(Scalar(2.0)), table});
      testing::ExpectStagesMatch(sum, rows, ranks);
    }
}

TEST(StagesTest, SumToIsTheAggregateOfItsSize) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1000, 1}, {1000, 5}})
    for (const Matrix& form : Forms(RandomCells(1000, 5, 3)))
      for (const int workers : {1, 2, 3, 8}) {
        Invocation call("sumTo", {Value(form), Value(Scalar(rows)), Value(Scalar(columns))});
        call.ExpectPiecesMatch(workers);
      }
}

TEST(StagesTest, ATextHasTheRowsThatAreShown) {
  const auto number = [](int64_t n) { return Value(Scalar(n)); };
  for (const int64_t rows : kSizes)
    for (const Matrix& form : Forms(RandomCells(rows, 3, 3)))
      for (const int64_t shown : {int64_t{0}, int64_t{7}, int64_t{100}, int64_t{1000}})
        for (const int32_t ranks : kRanks)
          for (const bool sparse : {false, true}) {
            Invocation call("toString", {Value(form), number(shown), number(2), number(4),
                                         Value(Scalar(sparse)), Value(Scalar(";")), std::nullopt});
            testing::ExpectStagesMatch(call, rows, ranks);
          }
}

TEST(StagesTest, TransformsSendColumnsAndGetRowsBack) {
  for (const int64_t rows : {1, 64, 130, 1000})
    for (const int64_t columns : {1, 2, 12})
      for (const Matrix& form : Forms(RandomCells(rows, columns, 3)))
        for (const int32_t ranks : kRanks) {
          Invocation forward("fft", {Value(form)});
          testing::ExpectStagesMatch(forward, rows, ranks);
          Invocation inverse("ifft", {Value(form), Value(RandomCells(rows, columns, 4))});
          testing::ExpectStagesMatch(inverse, rows, ranks);
          Invocation real("ifft", {Value(form), std::nullopt});
          testing::ExpectStagesMatch(real, rows, ranks);
        }
}

TEST(StagesTest, GroupsOfColumnsGoToTheirRows) {
  for (const int64_t rows : {1, 64, 130, 1000})
    for (const int64_t groups : {1, 3, 12})
      for (const int32_t ranks : kRanks) {
        const Matrix x = RandomCells(rows, 12, 3);
        Invocation call("regroup", {Value(x), Value(Scalar(groups))});
        testing::ExpectStagesMatch(call, rows, ranks);
        Invocation back("regroup", {Value(call.RunMatrix()), Value(Scalar(rows))});
        EXPECT_TRUE(Matrix::SameCells(back.RunMatrix(), x));
      }
  EXPECT_EQ(Invocation("regroup", {Value(RandomCells(2, 7, 1)), Value(Scalar(int64_t{3}))}).Error(),
            "regroup: 7 columns are no 3 groups");
}

TEST(StagesTest, EverySampleIsDrawnWhole) {
  for (const bool replace : {false, true})
    for (const int workers : {1, 2, 3, 8}) {
      Invocation call("sample", {Value(Scalar(int64_t{2000})), Value(Scalar(int64_t{1000})),
                                 Value(Scalar(replace)), Value(Scalar(int64_t{7}))});
      call.ExpectPiecesMatch(workers);
    }
}

// Letters that name rows of the result, columns of it, or are summed.
TEST(StagesTest, EinsumSharesOutALetter) {
  const Matrix tall = RandomCells(1000, 4, 1, 1), other = RandomCells(1000, 3, 2, 1),
               small = RandomCells(4, 4, 3, 1), column = RandomCells(1000, 1, 4, 1),
               square = RandomCells(1000, 1000, 6);
  const auto einsum = [](const char* equation, const std::vector<Matrix>& operands) {
    return Invocation("einsum", Inputs(operands.begin(), operands.end()), {{"equation", Scalar(equation)}});
  };
  for (const int32_t ranks : kRanks) {
    for (const auto& [equation, operands] :
         {std::pair<const char*, std::vector<Matrix>>{"ij,jk->ik", {tall, small}},
          {"ij,ij->ij", {tall, Csr(tall)}},
          {"ij->i", {tall}},
          {"ii->i", {square}},
          {"i,ij,ik->ij", {column, tall, other}}})
      einsum(equation, operands).ExpectPiecesMatch(ranks);
    for (const auto& [equation, operands] :
         {std::pair<const char*, std::vector<Matrix>>{"ij->ji", {tall}}, {"jk,ij->ki", {small, tall}}}) {
      Invocation call = einsum(equation, operands);
      testing::ExpectStagesMatch(call, 1000, ranks, 0);
    }
    for (const auto& [equation, operands] :
         {std::pair<const char*, std::vector<Matrix>>{"ij,ik->jk", {tall, other}},
          {"ij,ij->", {tall, tall}},
          {"ij->j", {tall}},
          {"ii->", {square}},
          {"kj,jl->kl", {*Transpose(tall), other}},
          {"i,ij,jk->k", {column, tall, small}},
          {"ij,ik,jl,lm->km", {tall, other, small, small}}}) {
      Invocation call = einsum(equation, operands);
      testing::ExpectStagesMatch(call, 1000, ranks, 1);
    }
  }
}

// Also where there are fewer columns than a granule has rows.
TEST(StagesTest, FourierTransformsOfColumnsAreSharedOut) {
  for (const int64_t columns : {3, 20, 64, 200}) {
    for (const int32_t ranks : {2, 5, 8}) {
      Invocation call("fft", {Value(RandomCells(64, columns, 3, 1))});
      testing::ExpectStagesMatch(call, 64, ranks);
      const StagedForm& form = *StagedFormAt(*call.op, 0);
      const Split cuts = Distribution::SplitRows(64, ranks).split;
      const Value* const inputs[] = {&*call.inputs[0]};
      std::vector<Value> sent(static_cast<size_t>(2 * ranks));
      ASSERT_TRUE(form.run({.form = form,
                            .node = call.node,
                            .input_infos = call.infos,
                            .rows = cuts,
                            .result_rows = cuts,
                            .inputs = inputs,
                            .context = call.context},
                           sent)
                      .ok());
      for (const Value& part : sent) {
        EXPECT_LE(part.shape().columns, CeilDivide(columns, ranks));
        EXPECT_GE(part.shape().columns, columns / ranks);
      }
    }
  }
}

}  // namespace
}  // namespace heddle::ops
