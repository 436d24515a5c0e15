// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "tests/reference/catalog.h"
#include "tests/unit/ops/run_operator.h"

// upper.tri and lower.tri, cumsumprod and rowcumsum, contains.
namespace heddle::ops {
namespace {

using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Value Flag(bool flag) { return Value(Scalar(flag)); }

void ExpectReference(const std::string& op, const Inputs& inputs) {
  Invocation call(op, inputs);
  std::vector<const Value*> given;
  for (const auto& input : inputs) given.push_back(input ? &*input : nullptr);
  const Value expected = reference::FindKernel(op)(call.node, given), got = call.Run();
  ASSERT_EQ(got.IsMatrix(), expected.IsMatrix()) << op;
  if (got.IsMatrix()) {
    EXPECT_TRUE(Matrix::SameCells(got.matrix(), expected.matrix())) << op;
  } else {
    EXPECT_EQ(got.scalar(), expected.scalar()) << op;
  }
}

TEST(TriangleTest, OnesOrValuesOnOneSideOfTheDiagonal) {
  const Matrix x = Rows({{1, 2, 0}, {4, 5, 6}, {0, 8, 9}});
  EXPECT_TRUE(
      Matrix::SameCells(Invocation("upper.tri", {x}).RunMatrix(), Rows({{0, 1, 1}, {0, 0, 1}, {0, 0, 0}})));
  EXPECT_TRUE(Matrix::SameCells(Invocation("upper.tri", {x, Flag(true), Flag(true)}).RunMatrix(),
                                Rows({{1, 2, 0}, {0, 5, 6}, {0, 0, 9}})));
  EXPECT_TRUE(Matrix::SameCells(Invocation("lower.tri", {x, std::nullopt, Flag(true)}).RunMatrix(),
                                Rows({{0, 0, 0}, {4, 0, 0}, {0, 8, 0}})));
  EXPECT_TRUE(Matrix::SameCells(Invocation("lower.tri", {*FilledMatrix(2, 2, 0), Flag(true)}).RunMatrix(),
                                *FilledMatrix(2, 2, 0)));
}

TEST(TriangleTest, AgreesWithTheReference) {
  for (const auto& [rows, columns] : {std::pair{5, 5}, {3, 8}, {8, 3}, {1, 4}, {4, 1}, {0, 3}})
    for (const Matrix& x : Forms(RandomCells(rows, columns, 4)))
      for (const std::string op : {"upper.tri", "lower.tri"})
        for (const bool diagonal : {false, true})
          for (const bool values : {false, true}) ExpectReference(op, {x, Flag(diagonal), Flag(values)});
}

TEST(TriangleTest, KeepsTheFormatWhereItIsKnownToKeepValues) {
  const Matrix x = testing::Csr(RandomCells(4, 4, 1));
  EXPECT_EQ(Invocation("upper.tri", {x, Flag(true), Flag(true)}).Infer()->format, Format::kSparse);
  EXPECT_EQ(Invocation("upper.tri", {x, Flag(true), Flag(true)}).InferBlind()->format, Format::kDense);
  EXPECT_EQ(Invocation("upper.tri", {x}).Infer()->format, Format::kDense);
}

TEST(CumsumprodTest, CarriesAProductAlong) {
  EXPECT_TRUE(Matrix::SameCells(Invocation("cumsumprod", {Rows({{1, 2}, {3, 4}, {5, 6}})}).RunMatrix(),
                                Rows({{1}, {7}, {47}})));
  for (const int64_t n : {0, 1, 1000})
    for (const Matrix& x : Forms(RandomCells(n, 2, 9))) ExpectReference("cumsumprod", {x});
  StatusCode code;
  EXPECT_EQ(Invocation("cumsumprod", {Rows({{1}})}).Error(&code), "cumsumprod: needs two columns, got 1x1");
  EXPECT_EQ(code, StatusCode::kInvalidArgument);
}

TEST(RowCumsumTest, AddsFromLeftToRightInEveryPiece) {
  for (const auto& [rows, columns] : {std::pair{3, 3}, {1, 900}, {500, 7}, {4, 0}})
    for (const Matrix& x : Forms(RandomCells(rows, columns, 3))) ExpectReference("rowcumsum", {x});
  Invocation("rowcumsum", {RandomCells(3000, 5, 3)}).ExpectPiecesMatch(3);
}

TEST(ContainsTest, LooksForACellOrARow) {
  const Matrix x = Rows({{1, 2, 0}, {4, kNaN, 6}, {0, 8, 9}});
  for (const Matrix& form : Forms(x)) {
    for (const double wanted : {6.0, 7.0, 0.0, -0.0, kNaN})
      ExpectReference("contains", {form, Value(Scalar(wanted))});
    ExpectReference("contains", {form, Rows({{4, kNaN, 6}})});
    ExpectReference("contains", {form, Rows({{1, 2, 3}})});
  }
  EXPECT_EQ(Invocation("contains", {x, Value(Scalar(8.0))}).Run().scalar(), Scalar(true));
  EXPECT_EQ(Invocation("contains", {x, Value(Scalar(7.0))}).Run().scalar(), Scalar(false));
  EXPECT_EQ(Invocation("contains", {x, Rows({{4, kNaN, 6}})}).Run().scalar(), Scalar(true));
  StatusCode code;
  EXPECT_EQ(Invocation("contains", {x, Rows({{1, 2}})}).Error(&code),
            "contains: the pattern must be a number or a row of the 3x3 matrix, not 1x2");
  EXPECT_EQ(code, StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace heddle::ops
