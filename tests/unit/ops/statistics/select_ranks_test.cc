// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/select_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "ops/base/parallel.h"

namespace heddle::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> Sorted(std::vector<double> cells) {
  std::sort(cells.begin(), cells.end(),
            [](double a, double b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); });
  return cells;
}

// All places of a few cells, some of many, on one and on four threads.
void ExpectSelectedAsSorted(const std::vector<double>& cells) {
  const std::vector<double> sorted = Sorted(cells);
  const size_t step = std::max<size_t>(1, cells.size() / 37);
  std::vector<int64_t> places;
  for (size_t place = 0; place < cells.size(); place += step) places.push_back(static_cast<int64_t>(place));
  if (places.back() + 1 < static_cast<int64_t>(cells.size()))
    places.push_back(static_cast<int64_t>(cells.size()) - 1);
  for (const int threads : {1, 4}) {
    Arena arena(threads);
    std::vector<double> selected;
    arena.Execute([&] { selected = SelectRanks(cells, places); });
    ASSERT_EQ(selected.size(), places.size());
    for (size_t i = 0; i < places.size(); ++i) {
      const double expected = sorted[static_cast<size_t>(places[i])];
      ASSERT_EQ(selected[i], expected) << "place " << places[i] << " of " << cells.size();
      ASSERT_EQ(std::signbit(selected[i]), std::signbit(expected));
    }
  }
}

TEST(SelectRanksTest, CellsStandWhereSortingPutsThem) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (const size_t count : {1u, 2u, 100u, 4096u, 4097u, 50'000u}) {
    std::vector<double> far_apart(count), close(count), few(count), equal(count, -3.5);
    for (size_t i = 0; i < count; ++i) {
      far_apart[i] = normal(random) * std::exp(30 * normal(random));
      close[i] = 1 + 1e-9 * normal(random);
      few[i] = static_cast<double>(random() % 5) - 2;
      if (few[i] == 0 && random() % 2 == 0) few[i] = -0.0;
      if (i % 13 == 5) far_apart[i] = i % 2 == 0 ? kInfinity : -kInfinity;
    }
    for (const auto& cells : {far_apart, close, few, equal}) ExpectSelectedAsSorted(cells);
  }
}

TEST(SelectRanksTest, NaNHasNoPlace) {
  for (const size_t count : {3u, 10'000u}) {
    std::vector<double> cells(count, 1.0);
    cells[count / 2] = std::numeric_limits<double>::quiet_NaN();
    const int64_t places[] = {0};
    EXPECT_TRUE(SelectRanks(cells, places).empty());
  }
}

}  // namespace
}  // namespace heddle::ops
