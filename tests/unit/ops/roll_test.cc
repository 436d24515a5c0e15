// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Forms;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;

Invocation Roll(Matrix x, Scalar shift) {
  return Invocation("roll", {Value(std::move(x)), Value(std::move(shift))});
}

TEST(RollTest, RowsMoveDownAndComeInAtTheTop) {
  for (const Shape& shape : {Shape{1, 3}, {5, 2}, {400, 3}, {0, 2}}) {
    const Matrix x = RandomCells(shape.rows, shape.columns, 5);
    for (const Matrix& form : Forms(x)) {
      for (const int64_t shift : {0, 1, 2, -1, -3, 7, 401, -1000}) {
        const Matrix result = Roll(form, Scalar(shift)).RunMatrix(2);
        EXPECT_EQ(result.storage(), form.storage());
        ASSERT_EQ(result.shape(), shape);
        for (int64_t i = 0; i < shape.rows; ++i) {
          const int64_t to = ((i + shift) % shape.rows + shape.rows) % shape.rows;
          for (int64_t j = 0; j < shape.columns; ++j) ASSERT_EQ(result.At(to, j), x.At(i, j)) << shift;
        }
      }
    }
  }
  EXPECT_TRUE(
      Matrix::SameCells(Roll(Rows({{1}, {2}, {3}, {4}}), 1.9).RunMatrix(), Rows({{4}, {1}, {2}, {3}})));
}

TEST(RollTest, AShiftThatIsNoNumberIsAnError) {
  EXPECT_EQ(Roll(Rows({{1}}), Scalar(NAN)).Error(), "roll: the shift must be a 64-bit integer, not NaN");
  EXPECT_EQ(Roll(Rows({{1}}), Scalar("a")).Error(), "roll: the shift must be a number, not the string \"a\"");
}

}  // namespace
}  // namespace heddle::ops
