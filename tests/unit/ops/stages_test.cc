// SPDX-License-Identifier: Apache-2.0
// Operators that ranks compute together in stages give the rows of the operator that runs whole.
#include <optional>

#include "tests/unit/ops/run_stages.h"

namespace heddle::ops {
namespace {

using testing::Forms;
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
          testing::ExpectStagesMatch(reshape, rows, ranks);
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

}  // namespace
}  // namespace heddle::ops
