// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/matmul.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "ops/base/cpu.h"
#include "ops/catalog.h"
#include "ops/simd/product/sparse_rows.h"
#include "tests/unit/ops/aggregate_cases.h"

namespace heddle::ops {
namespace {

// All four pairs of formats, one and two threads, each CPU, and split among workers, against the literal
// definition.
void ExpectDefinition(std::string_view op, const Matrix& a, const Matrix& b, int most_workers,
                      bool same_input = false) {
  SCOPED_TRACE(testing::Message() << op << " of " << a.rows() << "x" << a.columns() << " and " << b.rows()
                                  << "x" << b.columns());
  const Operator& the_operator = OperatorNamed(MatmulOperators(), op);
  const Matrix sparse_a = SparseView(a), sparse_b = SparseView(b);
  const Matrix dense_expected = op == "%*%" ? reference::Multiply(a, b) : reference::TransposedMultiply(a, b);
  for (const Matrix& left : {a, sparse_a}) {
    for (const Matrix& right : {b, sparse_b}) {
      SCOPED_TRACE(testing::Message() << Name(left.storage()) << " and " << Name(right.storage()));
      const Matrix expected =
          op == "%*%" ? reference::Multiply(left, right) : reference::TransposedMultiply(left, right);
      EXPECT_TRUE(Matrix::SameCells(expected, dense_expected)) << "the definition depends on the format";
      OnOneAndTwoThreads([&] {
        const Matrix result = OperatorRun(the_operator, {left, right}, same_input).Result1();
        EXPECT_EQ(result.IsSparse(), op == "%*%" && left.IsSparse() && right.IsSparse());
        EXPECT_TRUE(Matrix::SameCells(result, expected));
      });
      for (int workers = 2; workers <= most_workers; ++workers)
        EXPECT_TRUE(
            Matrix::SameCells(OperatorRun(the_operator, {left, right}, same_input).Split(workers), expected))
            << workers << " workers";
    }
  }
  if (!IsSupported(Cpu::kAvx512)) return;
  for (const Cpu cpu : {Cpu::kAvx2, Cpu::kAvx512}) {
    ASSERT_TRUE(ForceCpu(cpu).ok());
    for (const Matrix& left : {a, sparse_a})
      EXPECT_TRUE(
          Matrix::SameCells(OperatorRun(the_operator, {left, b}, same_input).Result1(), dense_expected))
          << Name(cpu) << " " << Name(left.storage());
  }
  ASSERT_TRUE(ForceCpu("auto").ok());
}

TEST(MatmulTest, SmallShapesHaveTheCellsOfTheDefinition) {
  for (int64_t m : {0, 1, 3, 5, 65})
    for (int64_t inner : {0, 1, 7, 8, 13, 100})
      for (int64_t n : {0, 1, 2, 7, 8, 9, 13, 40})
        ExpectDefinition("%*%", RandomCells(m, inner, 0.6, static_cast<uint64_t>(m + inner)),
                         RandomCells(inner, n, 0.6, 99), m == 65 ? 3 : 1);
}

TEST(MatmulTest, BlocksOfThePackedKernelDoNotShow) {
  for (int64_t m : {95, 200})
    for (int64_t inner : {192, 391})
      for (int64_t n : {11, 25, 120})
        ExpectDefinition("%*%", RandomCells(m, inner, 0.9, 1), RandomCells(inner, n, 0.9, 2), 2);
}

TEST(MatmulTest, TallTimesVector) {
  for (int64_t n : {1, 3, 10, 100})
    for (int64_t k : {1, 2, 5})
      ExpectDefinition("%*%", RandomCells(n == 100 ? 999 : 2011, n, 0.3, 4), RandomCells(n, k, 1.0, 5), 3);
}

// Every number of whole and of left cells that loops over a row have.
TEST(MatmulTest, RowsOfEveryLengthTimesFewColumns) {
  for (int64_t n = 14; n < 50; ++n)
    for (int64_t k : {1, 2, 3, 4, 6})
      ExpectDefinition("%*%", RandomCells(71, n, 0.7, static_cast<uint64_t>(n)), RandomCells(n, k, 0.8, 6),
                       1);
  for (int64_t n = 64; n < 84; ++n)  // Rows are taken one by one.
    ExpectDefinition("%*%", RandomCells(71, n, 0.7, static_cast<uint64_t>(n)), RandomCells(n, 1, 0.8, 6), 1);
}

// Rows of no entry, one and two (of one lane and of two) between longer ones, and as the last.
TEST(MatmulTest, SparseRowsOfFewEntriesTimesAVector) {
  for (int64_t n : {3, 9, 16, 40})
    for (double density : {0.0, 0.01, 0.04, 0.1})
      for (uint64_t seed : {1, 2}) {
        ExpectDefinition("%*%", RandomCells(301, n, density, seed), RandomCells(n, 1, 0.9, 7), 2);
        ExpectDefinition("t%*%", RandomCells(301, n, density, seed), RandomCells(301, 1, 0.9, 7), 2);
      }
}

// Lanes of several columns side by side; rows of no, one and two entries between longer ones.
TEST(MatmulTest, SparseRowsTimesFewColumns) {
  for (int64_t k : {2, 3, 4, 5, 6, 7, 8})
    for (double density : {0.0, 0.01, 0.04, 0.3}) {
      ExpectDefinition("%*%", RandomCells(301, 40, density, 3), RandomCells(40, k, 0.9, 7), 2);
      ExpectDefinition("t%*%", RandomCells(301, 40, density, 3), RandomCells(301, k, 0.9, 7), 2);
    }
}

// One pass over the entries and several, with and without a part of a vector at the end.
TEST(MatmulTest, SparseRowsTimesManyColumns) {
  for (int64_t k : {40, 41, 48, 49, 63, 64, 96, 97, 100, 145, 192, 193, 200, 207, 385})
    ExpectDefinition("%*%", RandomCells(33, 40, 0.2, 3), RandomCells(40, k, 0.9, 7), 2);
}

// Cells of fused operators along entries may be zero where the driver is not; the rows that they would
// multiply do not count.
TEST(MatmulTest, AZeroEntryCountsAsAbsent) {
  const double values[] = {2.0, 0.0, -0.0, 3.0};
  const int32_t columns[] = {0, 1, 2, 3};
  for (int64_t n : {5, 37, 100, 401}) {
    std::vector<double> b(static_cast<size_t>(4 * n), std::numeric_limits<double>::infinity());
    for (int64_t c = 0; c < n; ++c)
      b[static_cast<size_t>(c)] = b[static_cast<size_t>(3 * n + c)] = static_cast<double>(c);
    for (const Cpu cpu : {Cpu::kAvx2, Cpu::kAvx512}) {
      if (!IsSupported(cpu)) continue;
      ASSERT_TRUE(ForceCpu(cpu).ok());
      std::vector<double> out(static_cast<size_t>(n + 1), -1.0);
      simd::MultiplySparseRow(values, columns, 4, b.data(), n, n, out.data());
      for (int64_t c = 0; c < n; ++c)
        ASSERT_EQ(out[static_cast<size_t>(c)], 5.0 * static_cast<double>(c)) << Name(cpu) << " " << n;
      EXPECT_EQ(out.back(), -1.0) << "written beyond the row";
    }
  }
  ASSERT_TRUE(ForceCpu("auto").ok());
}

TEST(MatmulTest, LongRowsTimesFewColumns) {
  for (int64_t n : {511, 512, 513, 516, 517, 519, 1000})
    for (int64_t k : {1, 2, 3, 4, 7})
      ExpectDefinition("%*%", RandomCells(23, n, 0.5, static_cast<uint64_t>(n)), RandomCells(n, k, 0.8, 6),
                       1);
}

TEST(MatmulTest, LongInnerDimensions) {
  const Matrix row = RandomCells(2, 70001, 0.5, 1), rows = RandomCells(17, 65537, 0.1, 2);
  ExpectDefinition("%*%", row, RandomCells(70001, 1, 0.7, 3), 1);
  ExpectDefinition("%*%", row, RandomCells(70001, 3, 0.7, 3), 1);
  ExpectDefinition("%*%", row, RandomCells(70001, 9, 0.7, 3), 1);  // Panels of the inner dimension.
  for (int64_t k : {1, 2, 8}) ExpectDefinition("%*%", rows, RandomCells(65537, k, 0.7, 3), 1);
}

TEST(MatmulTest, TransposedProductsHaveTheCellsOfTheDefinition) {
  for (int64_t m : {0, 1, 5, 63, 64, 65, 999})
    for (int64_t n : {1, 2, 3, 4, 5, 8, 9, 13, 50})
      for (int64_t k : {1, 2, 4, 8, 9, 20})
        if (m < 900 || n * k < 300)
          ExpectDefinition("t%*%", RandomCells(m, n, 0.5, static_cast<uint64_t>(m + n)),
                           RandomCells(m, k, 0.5, 7), m > 60 ? 3 : 1);
}

// Leaves are few, and cells of the result many: threads take strips of its columns.
TEST(MatmulTest, TransposedProductsInStrips) {
  for (int64_t m : {300, 700})
    for (int64_t k : {65, 200})
      ExpectDefinition("t%*%", RandomCells(m, 110, 0.5, 3), RandomCells(m, k, 0.5, 7), 2);
}

TEST(MatmulTest, TransposedProductsWithoutColumns) {
  for (int64_t m : {0, 5, 999})
    for (int64_t columns : {0, 1, 9, 50}) {
      ExpectDefinition("t%*%", RandomCells(m, 0, 0.5, 1), RandomCells(m, columns, 0.5, 7), 3);
      ExpectDefinition("t%*%", RandomCells(m, columns, 0.5, 1), RandomCells(m, 0, 0.5, 7), 3);
    }
}

TEST(MatmulTest, TransposedProductsOverManyPanels) {
  for (int64_t n : {1, 3, 8, 10})
    ExpectDefinition("t%*%", RandomCells(20011, n, 0.4, 1), RandomCells(20011, 1, 0.9, 2), 4);
  ExpectDefinition("t%*%", RandomCells(2500, 100, 0.4, 1), RandomCells(2500, 2, 0.9, 2), 4);
  ExpectDefinition("t%*%", RandomCells(2500, 2, 0.4, 1), RandomCells(2500, 40, 0.9, 2), 2);
}

// With 9 to 24 columns of Y rows of X are vectors, or those of Y, as the columns of X say.
TEST(MatmulTest, TransposedProductsWithSomeColumns) {
  for (int64_t n : {3, 9, 17, 24, 31, 32, 33, 100})
    for (int64_t k : {9, 12, 13, 14, 23, 24, 25})
      ExpectDefinition("t%*%", RandomCells(331, n, 0.9, static_cast<uint64_t>(n)),
                       RandomCells(331, k, 0.9, 7), 1);
  for (int64_t n : {9, 13, 14, 24, 25, 31}) {
    const Matrix x = RandomCells(777, n, 0.9, 1);
    ExpectDefinition("t%*%", x, x, 2, true);
  }
}

// Here Granule(m) is 128 and ColumnPanelHeight(m, n) is 64: the number of columns of Y decides.
TEST(MatmulTest, PanelHeightsFollowTheColumnsOfY) {
  const Matrix x = RandomCells(4100, 1100, 1.0, 1);
  for (int64_t k : {1, 9}) {
    const Matrix y = RandomCells(4100, k, 1.0, 2);
    OperatorRun run(OperatorNamed(MatmulOperators(), "t%*%"), {x, y});
    EXPECT_TRUE(Matrix::SameCells(run.Result1(), reference::TransposedMultiply(x, y))) << k;
  }
}

TEST(MatmulTest, WideTransposedProductsAreTiled) {
  ExpectDefinition("t%*%", RandomCells(130, 500, 0.1, 1), RandomCells(130, 140, 0.1, 2), 2);
  ExpectDefinition("t%*%", RandomCells(70, 9000, 0.1, 1), RandomCells(70, 9, 0.1, 2), 1);
  for (int64_t k : {18, 33})
    ExpectDefinition("t%*%", RandomCells(90, 4001, 0.02, 3), RandomCells(90, k, 0.9, 4), 1);
  ExpectDefinition("t%*%", RandomCells(40, 200, 0.02, 5), RandomCells(40, 3000, 0.05, 6),
                   1);  // Entries of a tile are searched for.
}

// More column chunks than the lanes of a row are kept for at once: rows alone, and so few that their chunks
// are tasks.
TEST(MatmulTest, VeryLongSparseRows) {
  const int64_t n = 17 * kColumnChunk + 3;
  for (auto [m, k] : {std::pair{3, 1}, {3, 3}, {17, 1}}) {
    ExpectDefinition("%*%", RandomCells(m, n, 0.0001, 31), RandomCells(n, k, 0.9, 32), 2);
  }
}

// Leaves with few entries are joined cell by cell.
TEST(MatmulTest, TransposedProductsOfWideSparseMatrices) {
  const Matrix x = RandomCells(3000, 301, 0.004, 11);
  ExpectDefinition("t%*%", x, RandomCells(3000, 1, 0.9, 2), 4);
  for (int64_t k : {2, 3, 4, 5, 8}) ExpectDefinition("t%*%", x, RandomCells(3000, k, 0.9, 2), 3);
  ExpectDefinition("t%*%", RandomCells(3000, 2500, 0.0001, 13), RandomCells(3000, 7, 0.9, 2), 2);
  ExpectDefinition("t%*%", RandomCells(3000, 2500, 0.003, 13), RandomCells(3000, 1, 0.9, 2), 3);
  ExpectDefinition("t%*%", RandomCells(3000, 2500, 0.003, 13), RandomCells(3000, 2, 0.9, 2), 2);
}

// Rows with an entry or two, as those of one-hot matrices: of many columns of Y, too, leaves are joined row
// by row where they touch few rows of the result.
TEST(MatmulTest, TransposedProductsOfFewEntriesARow) {
  for (const int64_t n : {30, 900})
    for (const int64_t k : {9, 64}) {
      const double density = 1.0 / static_cast<double>(n);
      ExpectDefinition("t%*%", RandomCells(700, n, density, 17), RandomCells(700, k, 0.9, 18), 2);
    }
}

// Leaves of two CSR operands with few products are joined cell by cell, too.
TEST(MatmulTest, TransposedProductsOfTwoSparseMatrices) {
  for (double density : {0.002, 0.01, 0.05})
    ExpectDefinition("t%*%", RandomCells(3000, 97, density, 11), RandomCells(3000, 45, density, 2), 3);
  ExpectDefinition("t%*%", RandomCells(3000, 97, 0.01, 11), RandomCells(3000, 97, 0.01, 11), 2, true);
}

TEST(MatmulTest, ACancelledProductSaysSo) {
  std::atomic<bool> cancelled = true;
  KernelContext context;
  context.cancelled = &cancelled;
  const Matrix a = RandomCells(20, 30, 1.0, 1), b = RandomCells(30, 20, 1.0, 2);
  Node node;
  node.op = "%*%";
  const Value values[] = {a, b};
  const Value* inputs[] = {&values[0], &values[1]};
  const ValueInfo infos[] = {ValueInfo::OfMatrix(a.shape()), ValueInfo::OfMatrix(b.shape())};
  const Result<Value> result =
      OperatorNamed(MatmulOperators(), "%*%").run({node, Phase::kWhole, inputs, infos, 0, 20, 20, context});
  EXPECT_EQ(result.status().code(), StatusCode::kCancelled);
}

TEST(MatmulTest, SymmetricProductsAreMirrored) {
  for (int64_t n : {9, 30, 270}) {
    const Matrix x = RandomCells(150, n, 0.5, 3);
    ExpectDefinition("t%*%", x, x, 2, /*same_input=*/true);
  }
}

// Products that underflow end as -0.0 in a chain; zeros after them would flip that sign if they were not
// skipped.
TEST(MatmulTest, UnderflowLeavesNoTraceOfSkippedZeros) {
  for (int64_t n : {1, 9, 30}) {
    Matrix a = *FilledMatrix(20, 40, 0.0), b = RandomCells(40, n, 1.0, 6);
    for (int64_t i = 0; i < 20; ++i) a.mutable_data()[i * 40 + 39 - i] = i % 2 == 0 ? -5e-324 : 5e-324;
    for (int64_t i = 0; i < 40 * n; ++i) b.mutable_data()[i] *= 0.01;
    ExpectDefinition("%*%", a, b, 1);
    ExpectDefinition("t%*%", *ToDense(a), RandomCells(20, n, 1.0, 8), 1);
  }
}

TEST(MatmulTest, DenseSpecialValuesFollowTheChain) {
  Matrix a = RandomCells(70, 30, 1.0, 1), b = RandomCells(30, 12, 1.0, 2), v = RandomCells(30, 1, 1.0, 3);
  AddSpecials(a, Special::kAll);
  AddSpecials(b, Special::kDenormal);
  ExpectDefinition("%*%", a, b, 1);
  ExpectDefinition("%*%", a, v, 1);
  ExpectDefinition("t%*%", a, RandomCells(70, 3, 1.0, 4), 2);
}

TEST(MatmulTest, InferenceExplainsShapesThatDoNotFit) {
  Node node;
  node.op = "%*%";
  const Scalar* none[2] = {nullptr, nullptr};
  const auto message = [&](Shape a, Shape b) {
    const ValueInfo infos[] = {ValueInfo::OfMatrix(a), ValueInfo::OfMatrix(b)};
    return OperatorNamed(MatmulOperators(), "%*%").infer({node, infos, none}).status().ToString();
  };
  EXPECT_EQ(message({3, 4}, {5, 6}),
            "%*%: inner dimensions differ: 3x4 and 5x6\nthe left operand needs as many columns as the right "
            "one has rows");
  EXPECT_EQ(
      message({3, 4}, {3, 6}),
      "%*%: inner dimensions differ: 3x4 and 3x6\nt(X) %*% Y would fit: the left rows match the right rows");
  EXPECT_EQ(message({3, kUnknown}, {3, 6}), "ok");
  const ValueInfo infos[] = {ValueInfo::OfMatrix({3, 4}), ValueInfo::OfScalar(ValueType::kDouble)};
  EXPECT_EQ(OperatorNamed(MatmulOperators(), "%*%").infer({node, infos, none}).status().message(),
            "%*%: the right operand must be a matrix, got a scalar");
}

}  // namespace
}  // namespace heddle::ops
