// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/quantile_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "ops/base/parallel.h"
#include "ops/statistics/narrow_column.h"
#include "ops/statistics/unsorted_column.h"
#include "tests/unit/ops/run_stages.h"

namespace heddle::ops {
namespace {

using testing::Inputs;
using testing::Invocation;
using testing::Rows;

std::optional<Value> N(double number) { return Value(Scalar(number)); }

Split RandomCuts(int64_t rows, int32_t ranks, std::mt19937* random) {
  Split split{.cuts = {0, rows}};
  for (int32_t rank = 1; rank < ranks; ++rank)
    split.cuts.push_back(static_cast<int64_t>((*random)() % static_cast<uint32_t>(rows + 1)));
  std::sort(split.cuts.begin(), split.cuts.end());
  return split;
}

bool SameBits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

// Every rank has the bytes of the whole run, or its error.
void ExpectMatchAt(Invocation& call, const Split& rows) {
  const Result<Value> whole = call.RunRows(0, 0, 0);
  Status failed;
  const std::vector<std::vector<Value>> parts = testing::RunStages(call, rows, &failed);
  EXPECT_EQ(failed.ok(), whole.ok());
  if (!whole.ok()) {
    EXPECT_EQ(failed.message(), whole.status().message());
    EXPECT_EQ(failed.code(), whole.status().code());
    return;
  }
  ASSERT_EQ(parts.size(), rows.cuts.size() - 1);
  for (const std::vector<Value>& of_rank : parts) {
    if (whole->IsScalar()) {
      EXPECT_TRUE(SameBits(of_rank[0].scalar().AsDouble(), whole->scalar().AsDouble()) ||
                  (std::isnan(of_rank[0].scalar().AsDouble()) && std::isnan(whole->scalar().AsDouble())))
          << of_rank[0].scalar().ToText() << " for " << whole->scalar().ToText();
    } else {
      EXPECT_TRUE(Matrix::SameCells(of_rank[0].matrix(), whole->matrix()));
    }
  }
}

Matrix RandomColumn(int64_t rows, int kind, std::mt19937* random) {
  std::normal_distribution<double> normal;
  Matrix x = *Matrix::Dense(rows, 1);
  for (int64_t i = 0; i < rows; ++i) {
    double& cell = x.mutable_data()[i];
    switch (kind % 5) {
      case 0: cell = normal(*random); break;
      case 1: cell = static_cast<double>((*random)() % 5) - 2; break;
      case 2: cell = (*random)() % 2 == 0 ? 0.0 : -0.0; break;
      case 3: cell = 1; break;
      case 4: cell = (*random)() % 9 == 0 ? INFINITY : std::exp(20 * normal(*random)); break;
    }
    if (kind % 3 == 0 && (*random)() % 4 == 0) cell = (*random)() % 2 == 0 ? 0.0 : -0.0;
  }
  return x;
}

TEST(QuantileStagesTest, EveryRankHasTheBytesOfOne) {
  std::mt19937 random(21);
  for (int round = 0; round < 300; ++round) {
    const auto m = static_cast<int64_t>(1 + random() % (round % 10 == 0 ? 9000 : 300));
    const auto ranks = static_cast<int32_t>(1 + random() % 7);
    Matrix x = RandomColumn(m, round, &random);
    if (round % 11 == 0) x.mutable_data()[random() % static_cast<uint32_t>(m)] = NAN;
    Matrix w = *Matrix::Dense(m, 1), p = *Matrix::Dense(round % 6, 1);
    for (int64_t i = 0; i < m; ++i) w.mutable_data()[i] = random() % (round % 4 == 0 ? 1'000'000 : 4);
    for (int64_t i = 0; i < p.rows(); ++i) p.mutable_data()[i] = static_cast<double>(random() % 1001) / 1000;
    Split rows = RandomCuts(m, ranks, &random);
    if (round % 8 == 0) std::fill(rows.cuts.begin() + 1, rows.cuts.end(), m);  // All on the first rank.
    SCOPED_TRACE(::testing::Message() << "round " << round << ": " << m << " rows on " << ranks);
    const double one = static_cast<double>(random() % 101) / 100;
    const Matrix form = round % 2 == 0 ? x : testing::CsrPanel(x);
    std::vector<Invocation> calls;
    calls.emplace_back("median", Inputs{x});
    calls.emplace_back("median", Inputs{x, w});
    calls.emplace_back("interQuartileMean", Inputs{form});
    calls.emplace_back("interQuartileMean", Inputs{x, w});
    calls.emplace_back("quantile", Inputs{form, N(one)});
    calls.emplace_back("quantile", Inputs{x, p});
    calls.emplace_back("weightedQuantile", Inputs{form, w, N(one)});
    calls.emplace_back("weightedQuantile", Inputs{x, w, p});
    Arena(1 + round % 3).Execute([&] {
      for (Invocation& call : calls) {
        SCOPED_TRACE(::testing::Message() << call.node.op << " of " << call.inputs.size());
        ExpectMatchAt(call, rows);
      }
    });
  }
}

// The adjoint of the column is cut as the column is.
void ExpectAdjointMatchesAt(Invocation& call, const Split& rows) {
  const Matrix whole = call.RunMatrix();
  const std::vector<std::vector<Value>> parts = testing::RunStages(call, rows);
  ASSERT_EQ(parts.size(), rows.cuts.size() - 1);
  for (size_t rank = 0; rank < parts.size(); ++rank)
    EXPECT_TRUE(Matrix::SameCells(parts[rank][0].matrix(), whole.Rows(rows.cuts[rank], rows.cuts[rank + 1])))
        << "rank " << rank;
}

TEST(QuantileStagesTest, AdjointsHaveTheBytesOfOne) {
  std::mt19937 random(31);
  for (int round = 0; round < 150; ++round) {
    const auto m = static_cast<int64_t>(1 + random() % 300);
    Matrix x = RandomColumn(m, round, &random), w = *Matrix::Dense(m, 1);
    if (round % 13 == 0) x.mutable_data()[random() % static_cast<uint32_t>(m)] = NAN;
    const double least = round % 10 == 0 ? 0x1p52 : 0;  // Such weights have no exact sum.
    for (int64_t i = 0; i < m; ++i) w.mutable_data()[i] = least + random() % 4;
    w.mutable_data()[0] = 2;
    Matrix p = *Matrix::Dense(1 + round % 5, 1), dy = *Matrix::Dense(1 + round % 5, 1);
    for (int64_t i = 0; i < p.rows(); ++i) {
      p.mutable_data()[i] = static_cast<double>(random() % 11) / 10;
      dy.mutable_data()[i] = static_cast<double>(random()) / 1e9 - 2;
    }
    const Split rows = RandomCuts(m, static_cast<int32_t>(1 + random() % 6), &random);
    SCOPED_TRACE(::testing::Message() << "round " << round << ": " << m << " rows");
    const auto adjoint = [&](const char* of, Inputs inputs) {
      Invocation call("ranks_backward", std::move(inputs), {{"of", Scalar(std::string(of))}});
      ExpectAdjointMatchesAt(call, rows);
    };
    adjoint("median", {x, N(0.7), std::nullopt, std::nullopt});
    adjoint("median", {x, N(0.7), w, std::nullopt});
    adjoint("quantile", {x, N(3), w, N(0.3)});
    adjoint("quantile", {x, dy, std::nullopt, p});
    adjoint("quantile", {x, dy, w, p});
  }
}

TEST(QuantileStagesTest, ManyProbabilities) {
  std::mt19937 random(3);
  Matrix p = *Matrix::Dense(1001, 1);
  for (int64_t i = 0; i < p.rows(); ++i) p.mutable_data()[i] = static_cast<double>(i) / 1000;
  Invocation call("quantile", {RandomColumn(20'000, 1, &random), p});
  Invocation apart("quantile", {RandomColumn(20'000, 0, &random), p});
  for (const int32_t ranks : {1, 2, 5, 40}) {
    ExpectMatchAt(call, Distribution::SplitRows(20'000, ranks).split);
    ExpectMatchAt(apart, Distribution::SplitRows(20'000, ranks).split);
  }
}

void ExpectLongColumn(const Matrix& x, const Split& rows) {
  Invocation median("median", {x}), middle("interQuartileMean", {x}), number("quantile", {x, N(0.999)}),
      column("quantile", {x, Rows({{0}, {0.3}, {0.301}, {0.9}, {1}})});
  for (Invocation* call : {&median, &middle, &number, &column}) ExpectMatchAt(*call, rows);
  Invocation adjoint("ranks_backward", {x, N(0.7), std::nullopt, std::nullopt},
                     {{"of", Scalar(std::string("median"))}});
  ExpectAdjointMatchesAt(adjoint, rows);
}

// Long enough for guesses.
TEST(QuantileStagesTest, LongColumnsAreNarrowed) {
  std::mt19937 random(5);
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE(::testing::Message() << "round " << round);
    Matrix x = RandomColumn(150'000, round, &random);
    if (round == 9) x.mutable_data()[77'777] = NAN;
    Split rows = RandomCuts(x.rows(), static_cast<int32_t>(1 + random() % 6), &random);
    if (round % 4 == 0) std::fill(rows.cuts.begin() + 1, rows.cuts.end(), x.rows());
    Arena(3).Execute([&] { ExpectLongColumn(x, rows); });
  }
}

// The cells that are drawn tell nothing of the others.
TEST(QuantileStagesTest, AGuessMayBeWrong) {
  std::mt19937 random(6);
  const int64_t m = 150'000;
  std::vector<double> numbers(m);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Matrix drawn = *DrawCells(numbers, 0, m);
  ASSERT_GT(drawn.rows(), 1000);
  Matrix x = RandomColumn(m, 0, &random);
  for (int64_t i = 0; i < drawn.rows(); ++i)
    x.mutable_data()[static_cast<int64_t>(drawn.data()[i])] = 100 + static_cast<double>(i);
  ExpectLongColumn(x, RandomCuts(m, 4, &random));
}

TEST(NarrowColumnTest, GuessesHoldWhatIsAskedFor) {
  std::mt19937 random(8);
  Matrix x = RandomColumn(400'000, 1 + 3, &random);
  const Matrix drawn = *DrawCells({x.data(), static_cast<size_t>(x.rows())}, 0, x.rows());
  const std::vector<std::pair<double, double>> ranks = {{200'000, 200'001}, {40'000, 40'000}};
  const std::vector<ValueRange> ranges = GuessRanges(drawn, x.rows(), ranks);
  ASSERT_EQ(ranges.size(), 2U);
  const NarrowColumn column =
      *NarrowColumn::Of({x.data(), static_cast<size_t>(x.rows())}, ranges, /*cancelled=*/nullptr);
  EXPECT_LT(std::ssize(column.cells), x.rows() / 4);
  int64_t in_front = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const NarrowColumn::Part& part = column.parts[i];
    EXPECT_LT(in_front + part.skipped, i == 0 ? 40'000 : 200'000);
    in_front += part.count;
    EXPECT_GT(in_front + part.skipped, i == 0 ? 40'000 : 200'001);
  }
  EXPECT_TRUE(GuessRanges(drawn, x.rows(), std::vector<std::pair<double, double>>(40, {1, 400'000})).empty());
}

TEST(QuantileStagesTest, SumsOfWeightsThatAreNoLongerExact) {
  std::mt19937 random(9);
  for (int round = 0; round < 20; ++round) {
    const int64_t m = 40 + random() % 200;
    Matrix x = RandomColumn(m, round, &random), w = *Matrix::Dense(m, 1);
    for (int64_t i = 0; i < m; ++i)
      w.mutable_data()[i] = random() % 3 == 0 ? 1 + random() % 5 : 0x1p53 - 1 - random() % 1000;
    Invocation number("weightedQuantile", {x, w, N(static_cast<double>(random() % 101) / 100)});
    Invocation column("weightedQuantile", {x, w, Rows({{0}, {0.3}, {0.5}, {0.99}, {1}})});
    Invocation middle("interQuartileMean", {x, w});
    const Split rows = RandomCuts(m, 4, &random);
    ExpectMatchAt(middle, rows);
    ExpectMatchAt(number, rows);
    ExpectMatchAt(column, rows);
  }
}

TEST(QuantileStagesTest, EveryRankSaysWhatIsWrong) {
  const Matrix x = testing::RandomCells(300, 1, 4);
  const Split rows = Distribution::SplitRows(300, 4).split;
  const auto error = [&](Invocation call) {
    ExpectMatchAt(call, rows);
    return call.Error();
  };
  Matrix bad = *FilledMatrix(300, 1, 1);
  bad.mutable_data()[100] = 2.5;
  bad.mutable_data()[290] = -1;
  EXPECT_EQ(error(Invocation("median", {x, bad})), "median: weights are counts, but one is 2.5");
  EXPECT_EQ(error(Invocation("median", {x, *FilledMatrix(300, 1, 0)})), "median: all weights are 0");
  EXPECT_EQ(error(Invocation("quantile", {x, Rows({{0.5}, {2}})})),
            "quantile: p must be between 0 and 1, not 2.0");
  EXPECT_EQ(error(Invocation("quantile", {x, Rows({{0.5, 0.2}})})),
            "quantile: p must be a number or a column, not 1x2");
  Invocation empty("median", {*Matrix::Dense(0, 1)});
  ExpectMatchAt(empty, Distribution::SplitRows(0, 3).split);
  EXPECT_EQ(empty.Error(), "median: the column has no rows");
}

TEST(UnsortedColumnTest, HasTheCellsOfTheSortedOneInItsRanges) {
  std::mt19937 random(6);
  for (int round = 0; round < 100; ++round) {
    std::vector<double> cells(random() % 500);
    for (double& cell : cells) cell = static_cast<double>(random() % 40) - 20;
    std::vector<UnsortedColumn::Range> ranges;
    for (uint32_t i = 0; i < 1 + random() % 8; ++i) {
      double begin = static_cast<double>(random() % 50) - 25, end = static_cast<double>(random() % 50) - 25;
      if (end < begin) std::swap(begin, end);
      ranges.push_back({begin, end});
      if (random() % 8 == 0) ranges.back().begin.reset();
      if (random() % 8 == 0) ranges.back().end.reset();
    }
    std::optional<UnsortedColumn> column;
    Arena(3).Execute([&] { column.emplace(cells, ranges); });
    std::sort(cells.begin(), cells.end());
    ASSERT_EQ(column->count(), static_cast<int64_t>(cells.size()));
    for (const auto& [begin, end] : ranges) {
      const auto first = begin ? std::lower_bound(cells.begin(), cells.end(), *begin) : cells.begin();
      const auto last = end ? std::upper_bound(cells.begin(), cells.end(), *end) : cells.end();
      for (auto cell = first; cell < last; ++cell)
        ASSERT_EQ(column->Key(cell - cells.begin(), 0), *cell) << "round " << round;
      if (begin) {
        EXPECT_EQ(column->CountBefore(2, {{*begin}, 1, 0}), first - cells.begin());
        EXPECT_EQ(column->CountBefore(1, {{*begin}, 1, 7}), 7);
      }
      if (end) {
        EXPECT_EQ(column->CountBefore(0, {{*end}, 1, 0}), last - cells.begin());
      }
    }
  }
}

}  // namespace
}  // namespace heddle::ops
