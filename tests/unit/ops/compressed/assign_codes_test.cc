// SPDX-License-Identifier: Apache-2.0
// X[rl:ru, cl:cu] = V of a compressed X.
#include <gtest/gtest.h>

#include "tests/unit/ops/compressed/encoded.h"
#include "tests/unit/ops/compressed/made_groups.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Cells;
using testing::Inputs;
using testing::Invocation;
using testing::MakeCompressed;

constexpr int64_t kRows = 3001;

struct Bounds {
  int64_t row = 0, last_row = 0, column = 0, last_column = 0;  // From 1; 0: left out.
};

Matrix Ran(const Matrix& x, const Value& v, const Bounds& bounds, bool sparse, int64_t begin = 0,
           int64_t end = 0, int64_t total = 0) {
  const auto bound = [](int64_t number) {
    return number == 0 ? std::nullopt : std::optional(Value(Scalar(number)));
  };
  Invocation call("indexAssign", {Value(x), v, bound(bounds.row), bound(bounds.last_row),
                                  bound(bounds.column), bound(bounds.last_column)});
  if (sparse) call.infos[0].format = Format::kSparse;
  const Result<Value> result = call.RunRows(begin, end, total, 3);
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return result.ok() ? result->matrix() : Matrix();
}

// Whether it was taken from codes; the cells are those of the plain matrix.
bool IsTaken(const Matrix& x, const Value& v, const Bounds& bounds, bool sparse = false) {
  const Matrix plain = sparse ? *ToSparse(*ToDense(x)) : *ToDense(x);
  const Matrix found = Ran(x, v, bounds, sparse), wanted = Ran(plain, v, bounds, sparse);
  EXPECT_EQ(found.element_type(), wanted.element_type());
  EXPECT_TRUE(Matrix::SameCells(*ToDense(found), *ToDense(wanted)));
  EXPECT_TRUE(!found.IsCompressed() || Verify(found.groups()).ok());
  return found.IsCompressed();
}

std::vector<testing::MadeGroup> Groups() {
  std::vector<testing::MadeGroup> groups = testing::AllEncodings();
  groups.push_back({Encoding::kUncompressed, 2, 0});
  return groups;
}

TEST(AssignCodesTest, ConstantsRowsAndColumnsStayCodes) {
  for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32})
    for (const bool sparse : {false, true}) {
      const Cells cells = sparse ? Cells::kSpecialSparse : Cells::kSpecial;
      const Matrix x = MakeCompressed(kRows, Groups(), cells, type, 3),
                   other = MakeCompressed(kRows, Groups(), cells, type, 4);
      const int64_t n = x.columns();
      const std::vector<Bounds> all = {{1, 1500},         {700, 2900},      {2000, kRows},
                                       {0, 0, 3, 5},      {0, 0, 1, 1},     {0, 0, n, n},
                                       {500, 1500, 2, 6}, {1, kRows, 2, n}, {}};
      for (const Bounds& bounds : all) {
        SCOPED_TRACE(::testing::Message() << bounds.row << ":" << bounds.last_row << ", " << bounds.column
                                          << ":" << bounds.last_column << " sparse " << sparse);
        for (const double constant : {0.0, -0.0, 2.5, std::nan("")})
          EXPECT_TRUE(IsTaken(x, Value(Scalar(constant)), bounds, sparse));
        if (sparse) continue;
        // Rows and columns of another compressed matrix, as a view of more rows where not all are assigned.
        Matrix v = other;
        if (bounds.column > 0 && bounds.last_column - bounds.column + 1 < n) {
          Invocation columns("index", {Value(other), std::nullopt, std::nullopt, Value(Scalar(bounds.column)),
                                       Value(Scalar(bounds.last_column))});
          v = columns.RunMatrix();
        }
        if (bounds.row > 0) v = v.Rows(kRows - (bounds.last_row - bounds.row + 1), kRows);
        EXPECT_TRUE(IsTaken(x, Value(v), bounds) || !v.IsCompressed());
      }
    }
}

TEST(AssignCodesTest, FewDenseRowsAreLookedUpAndColumnsBecomeGroups) {
  const Matrix x = MakeCompressed(kRows, testing::AllEncodings(), Cells::kWhole, ElementType::kFloat64, 3);
  const Matrix rows =
      *ToDense(MakeCompressed(300, testing::AllEncodings(), Cells::kDecimal, ElementType::kFloat64, 5));
  EXPECT_TRUE(IsTaken(x, Value(rows), {1001, 1300}));
  EXPECT_TRUE(IsTaken(x, Value(*ToSparse(rows)), {1001, 1300}));
  const Matrix column = *ToDense(
      MakeCompressed(kRows, {{Encoding::kDenseCodes, 1, 400}}, Cells::kDecimal, ElementType::kFloat64, 6));
  EXPECT_TRUE(IsTaken(x, Value(column), {0, 0, 4, 4}));
  // A sparse matrix takes no -0.0 from a dense one.
  Matrix zeros = *FilledMatrix(300, x.columns(), -0.0);
  zeros.mutable_data()[7] = 5;
  const Matrix sparse =
      MakeCompressed(kRows, testing::AllEncodings(), Cells::kSpecialSparse, ElementType::kFloat64, 3);
  EXPECT_TRUE(IsTaken(sparse, Value(zeros), {1001, 1300}, true));
}

// A row of a large matrix is written where it is, once that is decoded: codes of all rows are not copied.
TEST(AssignCodesTest, AFewRowsAndManyDenseOnesAreLeft) {
  const Matrix x = MakeCompressed(kRows, testing::AllEncodings(), Cells::kWhole, ElementType::kFloat64, 3);
  EXPECT_FALSE(IsTaken(x, Value(Scalar(1.0)), {7, 7}));
  EXPECT_FALSE(IsTaken(x, Value(Scalar(1.0)), {7, 90}));
  EXPECT_FALSE(IsTaken(x, Value(*ToDense(x.Rows(0, 1500))), {1, 1500}));
}

// Each rank has some of the rows, and the whole value.
TEST(AssignCodesTest, RanksAssignTheirOwnRows) {
  const Matrix x = MakeCompressed(kRows, testing::AllEncodings(), Cells::kWhole, ElementType::kFloat64, 3);
  const Matrix v = MakeCompressed(1001, testing::AllEncodings(), Cells::kWhole, ElementType::kFloat64, 4);
  const Bounds bounds = {1001, 2001};
  const Matrix wanted = Ran(*ToDense(x), Value(v), bounds, false);
  for (const auto& [begin, end] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 960}, {960, 1024}, {960, 1984}, {1984, kRows}, {1024, 1088}}) {
    const Matrix part = Ran(x, Value(v), bounds, false, begin, end, kRows);
    EXPECT_TRUE(Matrix::SameCells(*ToDense(part), wanted.Rows(begin, end))) << begin;
  }
}

TEST(AssignCodesTest, ViewsOfRowsTakeAllColumns) {
  const Matrix x = MakeCompressed(kRows, testing::AllEncodings(), Cells::kWhole, ElementType::kFloat64, 3);
  EXPECT_TRUE(IsTaken(x.Rows(5, 2900), Value(Scalar(4.0)), {100, 2000}));
  IsTaken(x.Rows(5, 2900), Value(Scalar(4.0)), {100, 2000, 2, 3});
  IsTaken(x.Rows(5, 2900), Value(Scalar(4.0)), {0, 0, 2, 3});
}

}  // namespace
}  // namespace heddle::ops
