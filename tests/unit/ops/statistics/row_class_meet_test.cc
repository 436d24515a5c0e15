// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Forms;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;

Invocation Meet(Matrix a, Matrix b) {
  return Invocation("rowClassMeet", {Value(std::move(a)), Value(std::move(b))});
}

// As SystemDS 3.4 prints it, where pairs come in this order there, too.
TEST(RowClassMeetTest, ColumnsOfTheSamePairAreAClass) {
  const Matrix a = Rows({{1, 1}, {2, 2}, {1, 2}, {1, 0}}), b = Rows({{1, 2}, {2, 2}, {1, 2}, {1, 1}});
  for (const Matrix& first : Forms(a)) {
    for (const Matrix& second : Forms(b)) {
      const Result<std::vector<Value>> results = Meet(first, second).RunSeveralRows(0, 0, 0, 2);
      ASSERT_TRUE(results.ok());
      EXPECT_TRUE(Matrix::SameCells((*results)[0].matrix(), Rows({{1, 2}, {1, 1}, {1, 2}, {1, 0}})));
      EXPECT_TRUE(Matrix::SameCells((*results)[1].matrix(), Rows({{1, 1}, {2, 2}, {1, 1}, {1, 0}})));
    }
  }
}

TEST(RowClassMeetTest, OneRowMeetsAllAndWidthsMayDiffer) {
  const Matrix a = Rows({{3, 3, 4, NAN}, {5.9, 5, -5, 0}}), b = Rows({{7, 7, 7, 7, 7}});
  const Result<std::vector<Value>> results = Meet(a, b).RunSeveralRows(0, 0, 0);
  ASSERT_TRUE(results.ok());
  EXPECT_TRUE(Matrix::SameCells((*results)[0].matrix(), Rows({{1, 1, 2, 0, 0}, {1, 1, 2, 0, 0}})));
  EXPECT_TRUE(Matrix::SameCells((*results)[1].matrix(), Rows({{2, 2, 1, 0, 0}, {2, 2, 1, 0, 0}})));
  EXPECT_EQ(Meet(a, Rows({{1}, {2}, {3}})).Error(),
            "rowClassMeet: the first matrix is 2x4 but the second is 3x1");
}

TEST(RowClassMeetTest, RowsCanBeDivided) {
  Meet(RandomCells(300, 5, 1), RandomCells(300, 5, 2)).ExpectPiecesMatch(3);
  Meet(RandomCells(300, 5, 1), RandomCells(1, 5, 2)).ExpectPiecesMatch(2);
}

}  // namespace
}  // namespace heddle::ops
