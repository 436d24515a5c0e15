// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/catalog.h"
#include "tests/reference/select.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;

std::optional<Value> S(Scalar scalar) { return Value(std::move(scalar)); }
Invocation Order(Inputs inputs) { return Invocation(SelectOperators(), "order", std::move(inputs)); }

// Few different values: many ties.
Matrix Ties(int64_t rows, int64_t columns, uint32_t seed) {
  std::mt19937 random(seed);
  Matrix x = *Matrix::Dense(rows, columns);
  const double values[] = {-2, 0, -0.0, 0.5, 1e300, INFINITY, -INFINITY, NAN};
  for (int64_t k = 0; k < x.cells(); ++k) x.mutable_data()[k] = values[random() % 8];
  return x;
}

TEST(OrderTest, EqualsAnInsertionSort) {
  for (int64_t m : {0, 1, 2, 17, 700}) {  // 700 rows take the radix sort.
    const Matrix x = Ties(m, 3, static_cast<uint32_t>(m));
    for (const Matrix& form : Forms(x)) {
      for (bool decreasing : {false, true}) {
        for (int64_t by = 1; by <= 3; ++by) {
          const std::vector<int64_t> expected = reference::SortedRows(x, {by - 1}, decreasing);
          const Matrix indexes = Order({form, S(by), S(decreasing), S(true)}).RunMatrix(2);
          const Matrix sorted = Order({form, S(by), S(decreasing), S(false)}).RunMatrix(2);
          ASSERT_EQ(indexes.shape(), (Shape{m, 1}));
          ASSERT_EQ(sorted.shape(), x.shape());
          for (int64_t i = 0; i < m; ++i) {
            const int64_t row = expected[static_cast<size_t>(i)];
            EXPECT_EQ(indexes.At(i, 0), static_cast<double>(row + 1));
            EXPECT_TRUE(Matrix::SameCells(
                ToDense(sorted.Rows(i, i + 1)).ok() ? *ToDense(sorted.Rows(i, i + 1)) : Matrix(),
                *ToDense(form.Rows(row, row + 1))));
          }
        }
      }
    }
  }
}

TEST(OrderTest, SortsByRandomNumbers) {
  const Matrix x = RandomCells(3000, 1, 1, 1);
  const Matrix sorted = Order({x}).RunMatrix();
  for (int64_t i = 1; i < 3000; ++i) EXPECT_LE(sorted.At(i - 1, 0), sorted.At(i, 0));
}

TEST(OrderTest, SortsBySeveralColumns) {
  const Matrix x = Ties(600, 4, 9);
  const Matrix by = Rows({{3, 1}});
  const std::vector<int64_t> expected = reference::SortedRows(x, {2, 0}, true);
  const Matrix indexes = Order({x, by, S(true), S(true)}).RunMatrix();
  for (int64_t i = 0; i < 600; ++i)
    EXPECT_EQ(indexes.At(i, 0), static_cast<double>(expected[static_cast<size_t>(i)] + 1));
}

TEST(OrderTest, NansComeLastWhenAscendingAndFirstWhenDecreasing) {
  const Matrix x = Rows({{NAN}, {2}, {INFINITY}, {-1}});
  EXPECT_TRUE(Matrix::SameCells(Order({x}).RunMatrix(), Rows({{-1}, {2}, {INFINITY}, {NAN}})));
  EXPECT_TRUE(Matrix::SameCells(Order({x, {}, S(true)}).RunMatrix(), Rows({{NAN}, {INFINITY}, {2}, {-1}})));
}

TEST(OrderTest, NamesAColumnThatDoesNotExist) {
  StatusCode code;
  EXPECT_EQ(Order({Ties(3, 2, 1), S(3)}).Error(&code), "order: by=3 is not a column of a 3x2 matrix");
  EXPECT_EQ(code, StatusCode::kInvalidArgument);
  EXPECT_EQ(Order({Ties(3, 2, 1), S(0)}).RunTimeError(&code), "order: by=0 is not a column of a 3x2 matrix");
  EXPECT_EQ(code, StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace heddle::ops
