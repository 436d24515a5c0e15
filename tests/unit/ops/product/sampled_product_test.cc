// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/sampled_product.h"

#include <gtest/gtest.h>

#include "ops/catalog.h"
#include "tests/unit/ops/aggregate_cases.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Invocation;

void ExpectDefinition(const Matrix& w, const Matrix& u, const Matrix& v) {
  SCOPED_TRACE(::testing::Message() << w.rows() << "x" << w.columns() << ", " << u.columns() << " terms");
  const Matrix sparse = SparseView(w);
  const Matrix expected = reference::SampledProduct(w, u, v);
  for (int threads : {1, 2}) {
    Invocation call(SampledProductOperators(), "sampledProduct", {Value(sparse), Value(u), Value(v)});
    const Result<Value> result = call.RunRows(0, 0, 0, threads);
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_TRUE(result->matrix().IsSparse());
    EXPECT_TRUE(Matrix::SameCells(result->matrix(), expected));
  }
  // Split among two workers.
  const int64_t cut = w.rows() / 2;
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>(0, cut), std::pair(cut, w.rows())}) {
    if (begin == end) continue;
    Invocation call(SampledProductOperators(), "sampledProduct", {Value(sparse), Value(u), Value(v)});
    const Result<Value> result = call.RunRows(begin, end, w.rows());
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_TRUE(Matrix::SameCells(result->matrix(), expected.Rows(begin, end)));
  }
}

TEST(SampledProductTest, HasTheCellsOfTheDefinition) {
  for (int64_t m : {0, 1, 7, 130})
    for (int64_t n : {1, 9, 65})
      for (int64_t rank : {0, 1, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 20, 24, 27, 28, 31, 32, 33, 36, 40, 100})
        ExpectDefinition(RandomCells(m, n, 0.2, static_cast<uint64_t>(m + n)), RandomCells(m, rank, 0.9, 5),
                         RandomCells(n, rank, 0.9, 6));
}

// V of more than four megabytes, which is read by blocks; where a range of rows has few entries, row after
// row.
TEST(SampledProductTest, LargeRightOperandsAreReadByBlocks) {
  for (int64_t rank : {64, 67, 100})
    for (int64_t m : {20, 150, 301})
      ExpectDefinition(RandomCells(m, 8'200, 0.02, static_cast<uint64_t>(m)), RandomCells(m, rank, 0.9, 5),
                       RandomCells(8'200, rank, 0.9, 6));
}

TEST(SampledProductTest, EmptyRowsAndZeroResultsLeaveNoEntry) {
  Matrix w = *FilledMatrix(3, 2, 0.0);
  w.mutable_data()[0] = 5;
  w.mutable_data()[5] = 7;
  Matrix u = *FilledMatrix(3, 2, 1.0), v = *FilledMatrix(2, 2, 1.0);
  v.mutable_data()[1] = -1;  // row 0 of V is (1, -1): cell (0, 0) is zero
  Invocation call(SampledProductOperators(), "sampledProduct", {Value(SparseView(w)), Value(u), Value(v)});
  const Result<Value> result = call.RunRows(0, 0, 0);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->matrix().stored(), 1);
  EXPECT_EQ(result->matrix().At(2, 1), 2.0);
}

TEST(SampledProductTest, ShapesMustFit) {
  const Matrix w = *FilledMatrix(3, 2, 1.0), u = *FilledMatrix(3, 4, 1.0), v = *FilledMatrix(2, 5, 1.0);
  Invocation call(SampledProductOperators(), "sampledProduct", {Value(w), Value(u), Value(v)});
  EXPECT_EQ(call.Infer().status().message(), "sampledProduct: shapes 3x2, 3x4 and 2x5 do not fit");
}

}  // namespace
}  // namespace heddle::ops
