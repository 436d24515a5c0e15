// SPDX-License-Identifier: Apache-2.0
#include "ops/reduction/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace heddle::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kSmallest = std::numeric_limits<double>::denorm_min();

double SumOf(const std::vector<double>& terms) {
  ExactSum sum;
  for (const double term : terms) sum.Add(term);
  return sum.Rounded();
}

TEST(ExactSumTest, KnownSums) {
  EXPECT_EQ(SumOf({}), 0.0);
  EXPECT_FALSE(std::signbit(SumOf({-0.0, -0.0})));
  EXPECT_EQ(SumOf({1e300, 1, -1e300}), 1.0);
  EXPECT_EQ(SumOf({-1e300, -1, 1e300}), -1.0);
  EXPECT_EQ(SumOf({kLargest, kLargest, -kLargest}), kLargest);
  EXPECT_EQ(SumOf({kLargest, kLargest}), kInfinity);
  EXPECT_EQ(SumOf({-kLargest, -kLargest}), -kInfinity);
  EXPECT_EQ(SumOf({kSmallest, kSmallest}), 2 * kSmallest);
  EXPECT_EQ(SumOf({0x1p-1022, -kSmallest}), 0x1p-1022 - kSmallest);
  EXPECT_EQ(SumOf({kInfinity, 1}), kInfinity);
  EXPECT_TRUE(std::isnan(SumOf({kInfinity, -kInfinity})));
  EXPECT_TRUE(std::isnan(SumOf({NAN, 1})));
}

TEST(ExactSumTest, RoundsHalvesToEven) {
  EXPECT_EQ(SumOf({1, 0x1p-53}), 1.0);
  EXPECT_EQ(SumOf({1 + 0x1p-52, 0x1p-53}), 1 + 0x1p-51);
  EXPECT_EQ(SumOf({1, 0x1p-53, kSmallest}), 1 + 0x1p-52);
  EXPECT_EQ(SumOf({1, 0x1p-53, -kSmallest}), 1.0);
  EXPECT_EQ(SumOf({-1, -0x1p-53, -0x1p-200}), -1 - 0x1p-52);
  EXPECT_EQ(SumOf({2 - 0x1p-52, 0x1p-53}), 2.0);
}

// Whole numbers of 64 bits, added by the processor, at some power of two.
TEST(ExactSumTest, IsTheSumOfWholeNumbers) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    const int exponent = static_cast<int>(random() % 1900) - 1074 + 40;
    __int128 expected = 0;
    std::vector<double> terms(random() % 50);
    for (double& term : terms) {
      const auto whole = static_cast<int64_t>(random()) >> (11 + random() % 40);
      expected += whole;
      term = std::ldexp(static_cast<double>(whole), std::min(exponent, 900));
    }
    const double rounded = std::ldexp(static_cast<double>(expected), std::min(exponent, 900));
    EXPECT_EQ(SumOf(terms), rounded) << "round " << round;
  }
}

TEST(ExactSumTest, PartsInAnyOrderAndThroughCells) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> terms(random() % 200);
    for (double& term : terms) {
      do term = std::bit_cast<double>(random());
      while (!std::isfinite(term));
    }
    const double expected = SumOf(terms);
    std::shuffle(terms.begin(), terms.end(), random);
    ExactSum parts[3], all;
    for (const double term : terms) parts[random() % 3].Add(term);
    for (const ExactSum& part : parts) {
      double cells[ExactSum::kCells];
      part.Write(cells);
      all.Add(ExactSum::Read(cells));
    }
    EXPECT_EQ(all.Rounded(), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace heddle::ops
