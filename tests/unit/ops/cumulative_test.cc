// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "aggregate_cases.h"
#include "ops/catalog.h"
#include "tests/reference/aggregate.h"
#include "tests/unit/ops/run_stages.h"

namespace heddle::ops {
namespace {

TEST(CumulativeTest, HasTheCellsOfTheDefinition) {
  for (const char* op : {"cumsum", "cumprod", "cummin", "cummax"}) {
    for (int64_t m : {0, 1, 63, 64, 65, 999, 20011}) {
      for (int64_t n : {1, 3, 8, 9, 50}) {
        if (m * n > 300000) continue;
        SCOPED_TRACE(::testing::Message() << op << " of " << m << "x" << n);
        Matrix x = RandomCells(m, n, 0.8, static_cast<uint64_t>(m + n));
        AddSpecials(x, n == 3 ? Special::kAll : Special::kNegativeZero);
        const Matrix expected = reference::Cumulative(op, x), sparse = SparseView(x);
        const Matrix sparse_expected =
            reference::Cumulative(op, *ToDense(sparse));  // A -0.0 became an absent cell.
        OnOneAndTwoThreads([&] {
          const Operator& the_operator = OperatorNamed(CumulativeOperators(), op);
          EXPECT_TRUE(Matrix::SameCells(OperatorRun(the_operator, {x}).Result1(), expected));
          EXPECT_TRUE(Matrix::SameCells(OperatorRun(the_operator, {sparse}).Result1(), sparse_expected))
              << "CSR";
        });
      }
    }
  }
}

TEST(CumulativeTest, RanksTogetherMakeTheCellsOfOne) {
  for (const char* op : {"cumsum", "cumprod", "cummin", "cummax"}) {
    for (int64_t m : {0, 1, 64, 65, 999, 20011}) {
      for (int64_t n : {0, 1, 3, 9}) {
        Matrix x = RandomCells(m, n, 0.8, static_cast<uint64_t>(m + n));
        testing::Invocation call(op, {Value(x)});
        for (const int32_t ranks : {1, 2, 3, 8}) testing::ExpectStagesMatch(call, m, ranks);
      }
    }
  }
}

TEST(CumulativeTest, KnownValues) {
  Matrix x = *FilledMatrix(4, 1, 0.0);
  const double cells[] = {1, -2, 3, 4};
  std::copy_n(cells, 4, x.mutable_data());
  const auto last = [&](const char* op, int64_t i) {
    return OperatorRun(OperatorNamed(CumulativeOperators(), op), {x}).Result1().At(i, 0);
  };
  EXPECT_EQ(last("cumsum", 3), 6);
  EXPECT_EQ(last("cumprod", 2), -6);
  EXPECT_EQ(last("cummin", 3), -2);
  EXPECT_EQ(last("cummax", 1), 1);
}

}  // namespace
}  // namespace heddle::ops
