// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <tuple>

#include "ops/base/parallel.h"
#include "ops/cells/global_places.h"
#include "ops/cells/merge_runs.h"
#include "ops/cells/row_order.h"
#include "tests/unit/ops/run_stages.h"

namespace heddle::ops {
namespace {

using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::Rows;

std::optional<Value> S(Scalar scalar) { return Value(std::move(scalar)); }

// Few different values: many ties.
Matrix Ties(int64_t rows, int64_t columns, uint32_t seed) {
  std::mt19937 random(seed);
  Matrix x = *Matrix::Dense(rows, columns);
  const double values[] = {-2, 0, -0.0, 0.5, 1e300, INFINITY, -INFINITY, NAN};
  for (int64_t k = 0; k < x.cells(); ++k) x.mutable_data()[k] = values[random() % 8];
  return x;
}

Split RandomCuts(int64_t rows, int32_t ranks, std::mt19937* random) {
  Split split{.cuts = {0, rows}};
  for (int32_t rank = 1; rank < ranks; ++rank)
    split.cuts.push_back(static_cast<int64_t>((*random)() % static_cast<uint32_t>(rows + 1)));
  std::sort(split.cuts.begin(), split.cuts.end());
  return split;
}

// At any cuts of the input, the ranks have the rows of the whole result at its usual cuts.
void ExpectMatchAt(Invocation& call, const Split& rows) {
  const Value whole = call.Run();
  const auto ranks = static_cast<int32_t>(rows.cuts.size()) - 1;
  const Split cuts = Distribution::SplitRows(whole.matrix().rows(), ranks).split;
  const std::vector<std::vector<Value>> parts = testing::RunStages(call, rows);
  ASSERT_EQ(parts.size(), static_cast<size_t>(ranks));
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const Matrix& part = parts[static_cast<size_t>(rank)][0].matrix();
    EXPECT_EQ(part.storage(), whole.matrix().storage());
    EXPECT_TRUE(Matrix::SameCells(part, whole.matrix().Rows(cuts.Begin(rank), cuts.End(rank))))
        << "rank " << rank << " of " << ranks;
  }
}

TEST(OrderStagesTest, RanksTogetherMakeTheRowsOfOne) {
  Arena(2).Execute([&] {
    for (const int64_t m : {0, 1, 2, 64, 65, 500, 3000}) {
      const Matrix x = Ties(m, 3, static_cast<uint32_t>(m));
      for (const Matrix& form : Forms(x)) {
        for (const bool decreasing : {false, true}) {
          for (const bool numbers : {false, true}) {
            SCOPED_TRACE(::testing::Message() << m << " rows, decreasing " << decreasing << ", numbers "
                                              << numbers << ", CSR " << form.IsSparse());
            Invocation call("order", {form, S(int64_t{2}), S(decreasing), S(numbers)});
            for (const int32_t ranks : {1, 2, 3, 8}) testing::ExpectStagesMatch(call, m, ranks);
          }
        }
      }
    }
  });
}

TEST(OrderStagesTest, InputsMayBeCutAnywhere) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    const int64_t m = random() % 2000;
    const auto ranks = static_cast<int32_t>(1 + random() % 9);
    Matrix x = round % 2 == 0 ? Ties(m, 2, random()) : testing::RandomCells(m, 2, random(), 1);
    if (round % 5 == 0) std::fill_n(x.mutable_data(), x.cells(), 1.0);  // One key.
    if (round % 7 == 0)
      for (int64_t k = 0; k < x.cells(); ++k) x.mutable_data()[k] = static_cast<double>(k / 2);  // Sorted.
    Split rows = RandomCuts(m, ranks, &random);
    if (round % 4 == 0) std::fill(rows.cuts.begin() + 1, rows.cuts.end(), m);  // All on the first rank.
    SCOPED_TRACE(::testing::Message() << "round " << round << ": " << m << " rows on " << ranks);
    const Matrix by = Rows({{2, 1}});
    Invocation numbers("order", {x, by, S(round % 3 == 0), S(true)});
    ExpectMatchAt(numbers, rows);
    Invocation sorted("order", {Forms(x)[static_cast<size_t>(round % 3)], by, S(round % 3 == 0)});
    ExpectMatchAt(sorted, rows);
  }
}

TEST(OrderStagesTest, OneColumnAndNoColumnsToSortBy) {
  Invocation one("order", {testing::RandomCells(700, 1, 3)});
  Invocation none("order", {Ties(700, 2, 3), *Matrix::Dense(0, 0)});
  for (const int32_t ranks : {1, 4, 20}) {
    testing::ExpectStagesMatch(one, 700, ranks);
    testing::ExpectStagesMatch(none, 700, ranks);
  }
}

TEST(OrderStagesTest, EveryRankNamesTheColumnThatDoesNotExist) {
  Invocation call("order", {Ties(200, 2, 1), Rows({{1}, {3}})});
  const std::string expected = call.Error();
  Status failed;
  testing::RunStages(call, Distribution::SplitRows(200, 3).split, &failed);
  EXPECT_EQ(failed.message(), expected);
  EXPECT_EQ(failed.message(), "order: by=3 is not a column of a 200x2 matrix");
  EXPECT_EQ(failed.code(), StatusCode::kFailedPrecondition);
}

TEST(OrderStagesTest, ACancelledSortEnds) {
  const std::atomic<bool> cancelled = true;
  Invocation call("order", {Ties(200, 2, 1)});
  call.context.cancelled = &cancelled;
  Status failed;
  testing::RunStages(call, Distribution::SplitRows(200, 2).split, &failed);
  EXPECT_EQ(failed.code(), StatusCode::kCancelled);
}

TEST(MergeRunsTest, EqualItemsStandInTheOrderOfTheRuns) {
  struct Item {
    int key;
    size_t run, place;
  };
  std::mt19937 random(11);
  for (const size_t count : {0u, 1u, 2u, 3u, 7u}) {
    for (const int keys : {1, 50, 1'000'000}) {
      std::vector<std::vector<Item>> items(count);
      std::vector<std::span<const Item>> runs;
      size_t total = 0;
      for (size_t run = 0; run < count; ++run) {
        std::vector<int> sorted(random() % 40'000);
        for (int& key : sorted) key = static_cast<int>(random() % static_cast<uint32_t>(keys));
        std::sort(sorted.begin(), sorted.end());
        for (const int key : sorted) items[run].push_back({key, run, items[run].size()});
        runs.emplace_back(items[run]);
        total += sorted.size();
      }
      std::vector<Item> merged(total);
      Arena(4).Execute([&] {
        MergeRuns(
            runs, [](const Item& a, const Item& b) { return a.key < b.key; }, merged.data());
      });
      for (size_t i = 1; i < total; ++i) {
        const Item &a = merged[i - 1], &b = merged[i];
        ASSERT_LT(std::tie(a.key, a.run, a.place), std::tie(b.key, b.run, b.place));
      }
    }
  }
}

TEST(RowOrderTest, ThreadsSortAsOne) {
  const Matrix x = Ties(300'000, 2, 4);
  for (const bool decreasing : {false, true}) {
    const RowOrder order{.columns = {1, 0}, .keys = {.decreasing = decreasing}};
    std::vector<int64_t> one, four;
    Arena(1).Execute([&] { one = NumbersOf(*SortedRows(x, order, nullptr)); });
    Arena(4).Execute([&] { four = NumbersOf(*SortedRows(x, order, nullptr)); });
    EXPECT_EQ(one, four);
  }
}

// Elements of one key with weights.
class Elements final : public RankElements {
 public:
  std::vector<double> keys, weights;

  int64_t count() const override { return static_cast<int64_t>(keys.size()); }
  double Key(int64_t element, size_t) const override { return keys[static_cast<size_t>(element)]; }
  double Before(int64_t element) const override {
    return std::accumulate(weights.begin(), weights.begin() + element, 0.0);
  }
};

TEST(GlobalPlacesTest, WindowsAreSmallAndHoldTheElement) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const bool is_weighted = round % 2 == 1;
    const auto ranks = 1 + random() % 6;
    const KeyOrder order{.decreasing = round % 3 == 0};
    const auto step = static_cast<int64_t>(1 + random() % 20);
    const uint32_t different_keys = round % 5 == 0 ? 1 : 1 + random() % 100;
    std::vector<Elements> of_rank(ranks);
    std::vector<GlobalElement> all;  // One for each place.
    ElementRows samples(1);
    std::vector<int64_t> sample_counts;
    std::vector<double> totals;
    for (size_t rank = 0; rank < ranks; ++rank) {
      Elements& elements = of_rank[rank];
      elements.keys.resize(random() % 120);
      for (double& key : elements.keys) key = random() % different_keys;
      std::sort(elements.keys.begin(), elements.keys.end(),
                [&](double a, double b) { return order.KeyOf(a) < order.KeyOf(b); });
      for (int64_t i = 0; i < elements.count(); ++i) {
        elements.weights.push_back(is_weighted ? 1 + random() % 4 : 1);
        for (double w = 0; w < elements.weights.back(); ++w)
          all.push_back({{elements.Key(i, 0)}, static_cast<int32_t>(rank), elements.Before(i)});
        if (i % step == 0) samples.Add(elements, i);
      }
      sample_counts.push_back(CeilDivide(elements.count(), step));
      totals.push_back(elements.Before(elements.count()));
    }
    std::stable_sort(all.begin(), all.end(), [&](const GlobalElement& a, const GlobalElement& b) {
      return order.KeyOf(a.keys[0]) < order.KeyOf(b.keys[0]);
    });
    const Value sample_rows = *samples.ToMatrix();
    const PlaceBounds bounds(order, 1, sample_rows.matrix(), sample_counts, totals);
    for (size_t place = 0; place < all.size(); ++place) {
      const auto at = static_cast<double>(place);
      const auto begin = bounds.Begin(at), end = bounds.End(at);
      std::vector<Value> windows;
      std::vector<const Value*> pointers;
      double weight = 0;
      for (size_t rank = 0; rank < ranks; ++rank) {
        const auto r = static_cast<int32_t>(rank);
        const int64_t first = begin ? CountBefore(of_rank[rank], order, r, *begin) : 0;
        const int64_t last = end ? CountBefore(of_rank[rank], order, r, *end) : of_rank[rank].count();
        ElementRows rows(1);
        rows.AddWindow(of_rank[rank], first, last);
        windows.push_back(*rows.ToMatrix());
        weight += of_rank[rank].Before(last) - of_rank[rank].Before(first);
      }
      if (!is_weighted) {
        EXPECT_LE(weight, static_cast<double>(2 * ranks) * static_cast<double>(step));
      }
      for (const Value& window : windows) pointers.push_back(&window);
      const GlobalElement found = WindowReader(order, 1, pointers).Next().At(at);
      ASSERT_EQ(found.keys, all[place].keys) << "round " << round << ", place " << place;
      ASSERT_EQ(found.rank, all[place].rank) << "round " << round << ", place " << place;
      ASSERT_EQ(found.before, all[place].before) << "round " << round << ", place " << place;
    }
  }
}

TEST(GlobalPlacesTest, PlacesAreSharedOutInTheirOrder) {
  for (const int64_t count : {0, 1, 2, 7, 100}) {
    int64_t next = 0;
    for (int32_t rank = 0; rank < 6; ++rank) {
      const auto [first, last] = OwnPlaces(count, rank, 6);
      EXPECT_EQ(first, next);
      next = last;
    }
    EXPECT_EQ(next, count);
  }
}

}  // namespace
}  // namespace heddle::ops
