// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/aggregate.h"

#include <gtest/gtest.h>

#include <string>

#include "aggregate_cases.h"
#include "ops/catalog.h"

namespace heddle::ops {
namespace {

constexpr const char* kFull[] = {"sum", "mean", "min", "max", "prod", "var", "sd"};
constexpr const char* kRows[] = {"rowSums", "rowMeans", "rowMaxs",     "rowMins",    "rowProds",
                                 "rowVars", "rowSds",   "rowIndexMax", "rowIndexMin"};
constexpr const char* kColumns[] = {"colSums",  "colMeans", "colMaxs", "colMins",
                                    "colProds", "colVars",  "colSds"};

Matrix Expected(std::string_view op, const Matrix& x) {
  if (op.starts_with("row")) return reference::RowAggregate(op, x);
  if (op.starts_with("col")) return reference::ColumnAggregate(op, x);
  return *FilledMatrix(1, 1, reference::FullAggregate(op, x));
}

// Dense, CSR, one and two threads, and split among workers: all must have the cells of the literal
// definition.
void ExpectDefinition(std::string_view op, const Matrix& dense, int most_workers) {
  SCOPED_TRACE(testing::Message() << op << " of " << dense.rows() << "x" << dense.columns());
  const Matrix expected = Expected(op, dense);
  const Operator& the_operator = OperatorNamed(AggregateOperators(), op);
  const Matrix sparse = SparseView(dense);  // A -0.0 becomes an absent cell, +0.0.
  const Matrix sparse_expected = Expected(op, *ToDense(sparse));
  OnOneAndTwoThreads([&] {
    EXPECT_TRUE(Matrix::SameCells(OperatorRun(the_operator, {dense}).Result1(), expected)) << "dense";
    EXPECT_TRUE(Matrix::SameCells(OperatorRun(the_operator, {sparse}).Result1(), sparse_expected)) << "CSR";
  });
  for (int workers = 2; workers <= most_workers; ++workers) {
    EXPECT_TRUE(Matrix::SameCells(OperatorRun(the_operator, {dense}).Split(workers), expected))
        << workers << " workers";
    EXPECT_TRUE(Matrix::SameCells(OperatorRun(the_operator, {sparse}).Split(workers), sparse_expected))
        << workers << " workers, CSR";
  }
}

void ExpectAllDefinitions(const Matrix& dense, int most_workers) {
  for (const char* op : kFull) ExpectDefinition(op, dense, most_workers);
  for (const char* op : kRows) ExpectDefinition(op, dense, most_workers);
  for (const char* op : kColumns) ExpectDefinition(op, dense, most_workers);
}

TEST(AggregateTest, AwkwardShapesHaveTheCellsOfTheDefinition) {
  for (int64_t m : {1, 5, 63, 64, 65, 999})
    for (int64_t n : {1, 2, 3, 5, 7, 8, 9, 10, 13, 64})
      ExpectAllDefinitions(
          RandomCells(m, n, (m + n) % 2 == 0 ? 0.9 : 0.2, static_cast<uint64_t>(m * 1000 + n)),
          m == 999 ? 4 : 2);
}

TEST(AggregateTest, ManyPanelsHaveTheCellsOfTheDefinition) {
  for (int64_t n : {1, 7, 10}) ExpectAllDefinitions(RandomCells(20011, n, 0.5, static_cast<uint64_t>(n)), 4);
  for (const char* op : {"sum", "min", "var", "rowSums", "rowMaxs", "colSums", "colMins", "colVars"})
    ExpectDefinition(op, RandomCells(2011, 100, 0.1, 5), 3);
}

// Cells as large as doubles are, alone, among ordinary ones, beside infinities and NaN.
TEST(AggregateTest, SumsThatLeaveTheRangeHaveTheCellsOfTheDefinition) {
  for (int64_t m : {1, 5, 64, 65, 999})
    for (int64_t n : {1, 2, 7, 8, 9, 13}) {
      const auto seed = static_cast<uint64_t>(m * 1000 + n);
      Matrix x = Enlarged(RandomCells(m, n, n % 2 == 0 ? 0.9 : 0.3, seed), seed);
      ExpectAllDefinitions(x, 3);
      for (int64_t i = 0; i < x.cells(); ++i)
        if (i % 3 != 0) x.mutable_data()[i] = std::ldexp(x.data()[i], -1000);
      ExpectAllDefinitions(x, 2);
      AddSpecials(x, m % 2 == 0 ? Special::kInfinity : Special::kNaN);
      ExpectAllDefinitions(x, 2);
    }
  for (int64_t n : {1, 7, 10}) ExpectAllDefinitions(Enlarged(RandomCells(20011, n, 0.5, 3), 4), 4);
  for (const char* op : {"sum", "mean", "sd", "var", "colMeans", "colSds", "rowMeans", "colSums"}) {
    ExpectDefinition(op, Enlarged(RandomCells(2011, 100, 0.1, 5), 6), 3);
    ExpectDefinition(op, Enlarged(RandomCells(70, 2500, 0.9, 5), 7), 2);
    ExpectDefinition(op, Enlarged(RandomCells(3, 131073, 0.001, 5), 8), 2);
    ExpectDefinition(op, Enlarged(RandomCells(2, 70001, 1.0, 5), 9), 2);
  }
  const Matrix square = Enlarged(RandomCells(130, 130, 0.8, 1), 2);
  ExpectDefinition("trace", square, 2);
}

// A sum of whole multiples of a power of two is exact, however they are added up.
TEST(AggregateTest, SumsThatLeaveTheRangeAreThoseOfWholeNumbers) {
  constexpr int kUnit = 1012;
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 4}, {4, 1}, {300, 20}, {5000, 3}, {2, 70000}}) {
    Matrix x = *FilledMatrix(m, n, 0.0);
    std::vector<int64_t> of_rows(static_cast<size_t>(m)), of_columns(static_cast<size_t>(n));
    uint64_t state = 1;
    int64_t sum = 0;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        // Ascending by sign, and all together small.
        const int64_t sign = (2 * i < m) == (2 * j < n) ? 1 : -1;
        const int64_t cell = static_cast<int64_t>(NextBits(state) % 4096) * sign;
        x.mutable_data()[i * n + j] = std::ldexp(static_cast<double>(cell), kUnit);
        sum += cell;
        of_rows[static_cast<size_t>(i)] += cell;
        of_columns[static_cast<size_t>(j)] += cell;
      }
    }
    const auto value = [](int64_t whole) { return std::ldexp(static_cast<double>(whole), kUnit); };
    const auto result = [&](std::string_view op) {
      return OperatorRun(OperatorNamed(AggregateOperators(), op), {x}).Result1();
    };
    EXPECT_EQ(result("sum").At(0, 0), value(sum));
    const double mean = static_cast<double>(sum) / static_cast<double>(m * n);
    EXPECT_EQ(result("mean").At(0, 0), std::ldexp(mean, kUnit));
    const Matrix rows = result("rowSums"), columns = result("colSums");
    for (int64_t i = 0; i < m; ++i) EXPECT_EQ(rows.At(i, 0), value(of_rows[static_cast<size_t>(i)]));
    for (int64_t j = 0; j < n; ++j) EXPECT_EQ(columns.At(0, j), value(of_columns[static_cast<size_t>(j)]));
  }
}

TEST(AggregateTest, MeansAndDeviationsOfTheLargestCells) {
  const double largest = std::numeric_limits<double>::max(), large = 1.7e308;
  const auto of = [](std::string_view op, const Matrix& x) {
    return OperatorRun(OperatorNamed(AggregateOperators(), op), {x}).Result1().At(0, 0);
  };
  for (int64_t m : {2, 10, 1000}) {
    const Matrix most = *FilledMatrix(m, 3, largest), equal = *FilledMatrix(2, 1, large);
    for (const char* op : {"mean", "rowMeans", "colMeans"}) {
      EXPECT_LE(of(op, most), largest) << op;
      EXPECT_GT(of(op, most), largest * (1 - 1e-13)) << op;
      EXPECT_EQ(of(op, equal), large) << op;
    }
    EXPECT_EQ(of("var", equal), 0.0);
    EXPECT_EQ(of("sum", equal), std::numeric_limits<double>::infinity());
  }
  // The variance is beyond the largest double, the deviation is not.
  Matrix x = *FilledMatrix(2, 1, 3e200);
  x.mutable_data()[0] = 1e200;
  EXPECT_EQ(of("var", x), std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ(of("sd", x), 1.4142135623730951e200);
  EXPECT_DOUBLE_EQ(of("colSds", x), 1.4142135623730951e200);
}

// Here Granule(m) is 128, ColumnPanelHeight(m, n) 128 and 64, FullPanelHeight(m, n) 32 and 64,
// MomentsPanelHeight(m, n) 64.
TEST(AggregateTest, PanelHeightsFollowTheShape) {
  for (int64_t n : {2100, 1100}) {
    const Matrix x = RandomCells(4100, n, 1.0, 1);
    for (const char* op : {"sum", "colSums", "colVars"})
      EXPECT_TRUE(Matrix::SameCells(OperatorRun(OperatorNamed(AggregateOperators(), op), {x}).Result1(),
                                    Expected(op, x)))
          << op << " " << n;
  }
}

// The sums of a few entries of so many columns that panels are as high as granules.
TEST(AggregateTest, VeryWideSparseColumns) {
  for (double density : {0.0001, 0.003}) {
    const Matrix x = RandomCells(3000, 2500, density, 12);
    for (const char* op : {"colSums", "colMeans", "colVars", "colSds"}) ExpectDefinition(op, x, 4);
  }
  for (int64_t n : {9, 13, 200})
    for (const char* op : {"colVars", "colSds"}) ExpectDefinition(op, RandomCells(999, n, 0.005, 3), 3);
  Matrix special = *FilledMatrix(5, 70'000, 0.0);
  int64_t place = 11;
  for (const double cell : {HUGE_VAL, std::nan(""), -0.0, 5e-324, 1e300, -HUGE_VAL, 7.0})
    special.mutable_data()[place += 43'331] = cell;
  for (const char* op : {"colSums", "colMeans", "colMins", "colVars", "colSds"})
    ExpectDefinition(op, special, 3);
}

TEST(AggregateTest, WideRowsAreCutIntoChunks) {
  for (int64_t n : {65535, 65537, 140000}) {
    const Matrix x = RandomCells(3, n, 0.4, static_cast<uint64_t>(n));
    for (const char* op : {"sum", "mean", "max", "prod", "var", "rowSums", "rowMins", "rowVars",
                           "rowIndexMax", "colSums", "colMaxs"})
      ExpectDefinition(op, x, 1);
  }
}

// Most chunks of rows have no entry, some rows none; tasks begin and end within rows.
TEST(AggregateTest, LongRowsOfFewEntries) {
  for (const auto& [m, n, entries] :
       {std::tuple(66, 66'000, 300), {3, 17 * 65'536 + 3, 60}, {5, 70'000, 0}}) {
    Matrix x = *FilledMatrix(m, n, 0.0);
    uint64_t state = static_cast<uint64_t>(m);
    for (int i = 0; i < entries; ++i) {
      const int64_t place = static_cast<int64_t>(NextBits(state) % static_cast<uint64_t>(m)) * n +
                            static_cast<int64_t>(NextBits(state) % static_cast<uint64_t>(n));
      x.mutable_data()[place] = std::ldexp(static_cast<double>(NextBits(state) >> 11) * 0x1.0p-53 - 0.5,
                                           static_cast<int>(NextBits(state) % 16));
    }
    for (const char* op :
         {"sum", "mean", "min", "max", "rowSums", "rowMeans", "rowMins", "rowMaxs", "colSums"})
      ExpectDefinition(op, x, 3);
  }
}

// Payloads are divided by columns where there are more threads than leaves.
TEST(AggregateTest, FewLeavesForManyThreads) {
  const Matrix x = RandomCells(4100, 2500, 1.0, 3);
  for (const char* op : {"colSums", "colMins"}) {
    const Operator& the_operator = OperatorNamed(AggregateOperators(), op);
    const Matrix expected = Expected(op, x);
    for (const int threads : {8, 48}) {
      Arena arena(threads);
      arena.Execute([&] {
        EXPECT_TRUE(Matrix::SameCells(OperatorRun(the_operator, {x}).Result1(), expected))
            << op << ", " << threads;
      });
    }
  }
}

TEST(AggregateTest, SpecialValuesGoTheSameWay) {
  for (Special special :
       {Special::kNegativeZero, Special::kDenormal, Special::kInfinity, Special::kNaN, Special::kAll}) {
    for (int64_t n : {3, 10, 33}) {
      Matrix x = RandomCells(300, n, 0.7, 42);
      AddSpecials(x, special);
      ExpectAllDefinitions(x, 2);
    }
  }
}

TEST(AggregateTest, NearlyEmptyMatrices) {
  for (int64_t n : {2, 8, 20}) {
    Matrix x = *FilledMatrix(1000, n, 0.0);
    ExpectAllDefinitions(x, 3);
    x.mutable_data()[777 * n + 1] = -2.5;
    ExpectAllDefinitions(x, 3);
  }
}

// Leaves with few entries are joined column by column.
TEST(AggregateTest, WideSparseColumns) {
  const Matrix x = RandomCells(3000, 301, 0.004, 11);
  for (const char* op : {"sum", "colSums", "colMeans", "colMins"}) ExpectDefinition(op, x, 4);
}

TEST(AggregateTest, EmptyMatricesGiveTheStartOfTheFold) {
  const auto scalar = [](const char* op, int64_t m, int64_t n) {
    return OperatorRun(OperatorNamed(AggregateOperators(), op), {*FilledMatrix(m, n, 0.0)})
        .Result1()
        .At(0, 0);
  };
  EXPECT_EQ(scalar("sum", 0, 5), 0.0);
  EXPECT_EQ(scalar("sum", 5, 0), 0.0);
  EXPECT_EQ(scalar("prod", 0, 5), 1.0);
  EXPECT_EQ(scalar("min", 0, 0), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(scalar("mean", 0, 5)));
  EXPECT_TRUE(std::isnan(scalar("var", 0, 5)));
  EXPECT_EQ(scalar("var", 1, 1), 0.0);
  EXPECT_EQ(OperatorRun(OperatorNamed(AggregateOperators(), "colSums"), {*FilledMatrix(0, 12, 0.0)})
                .Result1()
                .columns(),
            12);
  EXPECT_EQ(OperatorRun(OperatorNamed(AggregateOperators(), "rowSums"), {*FilledMatrix(0, 12, 0.0)})
                .Result1()
                .rows(),
            0);
  EXPECT_EQ(OperatorRun(OperatorNamed(AggregateOperators(), "colVars"), {*FilledMatrix(3, 0, 0.0)})
                .Result1()
                .columns(),
            0);
}

TEST(AggregateTest, TraceIsTheSumOfTheDiagonal) {
  for (int64_t m : {1, 9, 700}) {
    const Matrix x = RandomCells(m, m, 0.5, static_cast<uint64_t>(m));
    ExpectDefinition("trace", x, 4);
    Matrix diagonal = *FilledMatrix(m, 1, 0.0);
    for (int64_t i = 0; i < m; ++i) diagonal.mutable_data()[i] = x.At(i, i);
    EXPECT_EQ(reference::FullAggregate("trace", x), reference::FullAggregate("sum", diagonal));
  }
}

TEST(AggregateTest, KnownValues) {
  Matrix x = *FilledMatrix(2, 3, 1.0);
  const double cells[] = {1, 4, 4, -2, std::nan(""), -2};
  std::copy_n(cells, 6, x.mutable_data());
  const auto run = [&](const char* op) {
    return OperatorRun(OperatorNamed(AggregateOperators(), op), {x}).Result1();
  };
  EXPECT_EQ(run("rowIndexMax").At(0, 0), 3);  // The last of equals.
  EXPECT_EQ(run("rowIndexMax").At(1, 0), 3);  // NaN ignored.
  EXPECT_EQ(run("rowIndexMin").At(0, 0), 1);
  EXPECT_EQ(run("rowSums").At(0, 0), 9);
  EXPECT_EQ(run("rowVars").At(0, 0), 3);
  EXPECT_TRUE(std::isnan(run("max").At(0, 0)));
  EXPECT_EQ(run("colMeans").At(0, 0), -0.5);
  EXPECT_EQ(run("colProds").At(0, 2), -8);
}

TEST(AggregateTest, InferenceRefusesScalarsAndOblongTraces) {
  Node node;
  node.op = "sum";
  const ValueInfo scalar = ValueInfo::OfScalar(ValueType::kDouble), oblong = ValueInfo::OfMatrix({3, 4});
  const Scalar* none = nullptr;
  Result<ValueInfo> info = OperatorNamed(AggregateOperators(), "sum").infer({node, {&scalar, 1}, {&none, 1}});
  EXPECT_EQ(info.status().message(), "sum: needs a matrix, got a scalar");
  node.op = "trace";
  info = OperatorNamed(AggregateOperators(), "trace").infer({node, {&oblong, 1}, {&none, 1}});
  EXPECT_EQ(info.status().message(), "trace: needs a square matrix, got 3x4");
  node.op = "colSums";
  info = OperatorNamed(AggregateOperators(), "colSums").infer({node, {&oblong, 1}, {&none, 1}});
  EXPECT_EQ(*info, ValueInfo::OfMatrix({1, 4}));
}

}  // namespace
}  // namespace heddle::ops
