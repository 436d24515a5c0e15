// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/select.h"

#include <cmath>

#include "ops/catalog.h"
#include "tests/reference/reorganize.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Attributes;
using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;

std::optional<Value> S(Scalar scalar) { return Value(std::move(scalar)); }
Invocation Call(std::string name, Inputs inputs, Attributes attributes = {}) {
  return Invocation(SelectOperators(), std::move(name), std::move(inputs), std::move(attributes));
}

// The rows (or columns) of x with these numbers.
Matrix Pick(const Matrix& x, bool rows, const std::vector<int64_t>& kept) {
  std::vector<Matrix> parts;
  for (int64_t k : kept)
    parts.push_back(rows ? reference::Index(x, k + 1, k + 1, 1, x.columns())
                         : reference::Index(x, 1, x.rows(), k + 1, k + 1));
  return rows ? reference::Rbind(parts) : reference::Cbind(parts);
}

TEST(RemoveEmptyTest, KeepsWhatIsNotZeroInEitherDirection) {
  const Matrix x = RandomCells(40, 30, 1, 25);
  for (bool rows : {true, false}) {
    const std::vector<int64_t> kept = reference::Kept(x, rows, nullptr);
    ASSERT_LT(kept.size(), rows ? 40u : 30u);
    ASSERT_GT(kept.size(), 1u);
    for (const Matrix& form : Forms(x)) {
      const Matrix result =
          Call("removeEmpty", {form}, {{"margin", Scalar(rows ? "rows" : "cols")}}).RunMatrix(2);
      EXPECT_EQ(result.storage(), form.storage());
      EXPECT_TRUE(Matrix::SameCells(result, Pick(x, rows, kept)));
    }
  }
}

// Vectors of several tasks: cells that stay at the ends of the tasks, and none in a task.
TEST(RemoveEmptyTest, LongVectorsLoseCellsAnywhere) {
  for (const int64_t length : {32767, 32768, 32769, 100'000}) {
    Matrix column = RandomCells(length, 1, 5, 2);
    for (int64_t i = 40'000; i < length; ++i) column.mutable_data()[i] *= i < 70'000 ? 0.0 : 1.0;
    const Matrix row = reference::Transpose(column), select = RandomCells(length, 1, 7, 2);
    for (const bool by_select : {false, true}) {
      std::vector<double> kept;
      for (int64_t i = 0; i < length; ++i)
        if ((by_select ? select : column).At(i, 0) != 0) kept.push_back(column.At(i, 0));
      ASSERT_GT(kept.size(), 1000u);
      for (const bool rows : {true, false}) {
        Inputs inputs = {rows ? column : row};
        if (by_select) inputs.emplace_back(select);
        const Matrix result =
            Call("removeEmpty", inputs, {{"margin", Scalar(rows ? "rows" : "cols")}}).RunMatrix(2);
        ASSERT_EQ(result.shape(), (rows ? Shape{static_cast<int64_t>(kept.size()), 1}
                                        : Shape{1, static_cast<int64_t>(kept.size())}));
        EXPECT_TRUE(std::equal(kept.begin(), kept.end(), result.data()));
      }
    }
  }
}

TEST(RemoveEmptyTest, SelectDecidesInsteadOfTheCells) {
  const Matrix x = RandomCells(9, 5, 2);
  for (bool rows : {true, false}) {
    const Matrix select = rows ? RandomCells(9, 1, 3) : RandomCells(1, 5, 8);
    const std::vector<int64_t> kept = reference::Kept(x, rows, &select);
    ASSERT_GT(kept.size(), 0u);
    for (const Matrix& form : Forms(x))
      for (const Matrix& s : Forms(select))
        EXPECT_TRUE(Matrix::SameCells(
            Call("removeEmpty", {form, s}, {{"margin", Scalar(rows ? "rows" : "cols")}}).RunMatrix(),
            Pick(x, rows, kept)));
    // A row selects rows, too, and a column columns.
    for (const Matrix& s : Forms(reference::Transpose(select)))
      EXPECT_TRUE(Matrix::SameCells(
          Call("removeEmpty", {x, s}, {{"margin", Scalar(rows ? "rows" : "cols")}}).RunMatrix(),
          Pick(x, rows, kept)));
  }
  EXPECT_EQ(Call("removeEmpty", {x, RandomCells(1, 5, 1)}, {{"margin", Scalar("rows")}}).Error(),
            "removeEmpty: select is 1x5 but margin=\"rows\" of a 9x5 matrix needs 9x1");
}

TEST(RemoveEmptyTest, NothingLeftGivesOneRowOfZerosOrNone) {
  const Matrix zero = Rows({{0, -0.0, 0}, {0, 0, 0}});
  for (const Matrix& form : Forms(zero)) {
    EXPECT_TRUE(Matrix::SameCells(Call("removeEmpty", {form}, {{"margin", Scalar("rows")}}).RunMatrix(),
                                  Rows({{0, 0, 0}})));
    EXPECT_TRUE(Matrix::SameCells(Call("removeEmpty", {form}, {{"margin", Scalar("cols")}}).RunMatrix(),
                                  Rows({{0}, {0}})));
    const Attributes none = {{"margin", Scalar("rows")}, {"empty.return", Scalar(false)}};
    EXPECT_EQ(Call("removeEmpty", {form}, none).RunMatrix().shape(), (Shape{0, 3}));
    const Attributes no_columns = {{"margin", Scalar("cols")}, {"empty.return", Scalar(false)}};
    EXPECT_EQ(Call("removeEmpty", {form}, no_columns).RunMatrix().shape(), (Shape{2, 0}));
  }
  for (const Shape shape : {Shape{300'000, 0}, Shape{0, 300'000}})
    for (const bool rows : {true, false})
      EXPECT_EQ(Call("removeEmpty", {*Matrix::Dense(shape.rows, shape.columns)},
                     {{"margin", Scalar(rows ? "rows" : "cols")}})
                    .RunMatrix(2)
                    .shape(),
                (rows ? Shape{1, shape.columns} : Shape{shape.rows, 1}));
  const Matrix nan = Rows({{0}, {NAN}});
  EXPECT_TRUE(
      Matrix::SameCells(Call("removeEmpty", {nan}, {{"margin", Scalar("rows")}}).RunMatrix(), Rows({{NAN}})));
  EXPECT_EQ(Call("removeEmpty", {nan}, {{"margin", Scalar("row")}}).Error(),
            "removeEmpty: margin must be \"rows\" or \"cols\", not \"row\"");
}

TEST(ReplaceTest, EqualsTheReferenceForSpecialValues) {
  Matrix x = RandomCells(300, 7, 4);
  x.mutable_data()[3] = NAN;
  x.mutable_data()[20] = INFINITY;
  x.mutable_data()[21] = -INFINITY;
  x.mutable_data()[22] = 1.5;
  const double values[] = {0, -0.0, 1.5, NAN, INFINITY, -INFINITY, 7};
  for (const Matrix& form : Forms(x)) {
    for (double pattern : values) {
      for (double replacement : values) {
        Invocation call = Call("replace", {form, S(pattern), S(replacement)});
        const Matrix result = call.RunMatrix(2);
        EXPECT_EQ(result.storage(), form.storage());
        EXPECT_TRUE(Matrix::SameCells(result, reference::Replace(x, pattern, replacement)))
            << pattern << " " << replacement;
        call.ExpectPiecesMatch(2);
      }
    }
  }
  EXPECT_EQ(Call("replace", {x, S("a"), S(1)}).Error(),
            "replace: pattern is a string, but the cells of a matrix are numbers");
}

}  // namespace
}  // namespace heddle::ops
