// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/exact.h"

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
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLeast = std::numeric_limits<double>::denorm_min();
constexpr double kGreatest = std::numeric_limits<double>::max();

ExactUnits Units(std::vector<double> numbers) { return UnitsOf(numbers); }

void ExpectUnits(const ExactUnits& units, int exponent, double most) {
  EXPECT_TRUE(units.is_exact);
  EXPECT_EQ(units.exponent, exponent);
  EXPECT_EQ(units.most, most);
}

TEST(ExactTest, TheUnitIsThePowerOfTwoOfTheLowestDigit) {
  ExpectUnits(Units({1, 0, 3}), 0, 3);
  ExpectUnits(Units({-12, 8}), 2, 3);
  ExpectUnits(Units({0.75, -5}), -2, 20);
  ExpectUnits(Units({kLeast, 3 * kLeast}), -1074, 3);
  ExpectUnits(Units({std::ldexp(1, 1000), std::ldexp(5, 1000)}), 1000, 5);
  ExpectUnits(Units({1 + std::ldexp(1, -52)}), -52, std::ldexp(1, 52) + 1);
  ExpectUnits(Units({}), ExactUnits::kAnyExponent, 0);
  ExpectUnits(Units({0.0, -0.0}), ExactUnits::kAnyExponent, 0);
  ExpectUnits(UnitsOf(std::vector<float>{0.5f, 6}), -1, 12);
  EXPECT_EQ(Units({kLeast, kGreatest}).most, kInfinity);
  EXPECT_FALSE(Units({1, kInfinity}).is_exact);
  EXPECT_FALSE(Units({kNan, 1}).is_exact);
}

TEST(ExactTest, UnitsJoinAndMultiply) {
  ExpectUnits(Joined(Units({12}), Units({0.5})), -1, 24);
  ExpectUnits(Joined(Units({0}), Units({6})), 1, 3);
  ExpectUnits(Joined(Units({6}), Units({0})), 1, 3);
  ExpectUnits(ProductsOf(Units({12}), Units({0.75})), 0, 9);
  ExpectUnits(ProductsOf(Units({12}), Units({0})), ExactUnits::kAnyExponent, 0);
  EXPECT_FALSE(Joined(Units({kNan}), Units({0})).is_exact);
  // 0 * Infinity is no number.
  EXPECT_FALSE(ProductsOf(Units({kInfinity}), Units({0})).is_exact);
}

TEST(ExactTest, SumsAreExactBelowTheDigitsOfWhatTheyAreComputedIn) {
  EXPECT_TRUE(AddExactly(Units({3}), std::ldexp(1, 51)));
  EXPECT_FALSE(AddExactly(Units({3}), std::ldexp(1, 52)));
  EXPECT_FALSE(AddExactly(Units({0.1, 1}), 4));
  EXPECT_TRUE(AddExactly(Units({255, 1}), 60'000, kFloatDigits));
  EXPECT_FALSE(AddExactly(Units({255, 1}), 66'000, kFloatDigits));
  EXPECT_TRUE(AddExactly(Units({0, -0.0}), kInfinity));
  EXPECT_TRUE(AddExactly(Units({kLeast}), 1000));
  EXPECT_FALSE(AddExactly(ProductsOf(Units({kLeast}), Units({0.5})), 1));  // Below the least double.
  EXPECT_FALSE(AddExactly(Units({std::ldexp(1, 1000)}), 1 << 24));         // Beyond the largest.
  EXPECT_TRUE(AddExactly(Units({std::ldexp(1, 971)}), 1 << 24));
  EXPECT_FALSE(AddExactly(ExactUnits::None(), 0));
}

TEST(ExactTest, ADictionaryIsLookedAtColumnByColumn) {
  ColumnGroup group;
  group.columns = {2, 4};
  ExpectUnits(UnitsOf(group), ExactUnits::kAnyExponent, 0);
  group.encoding = Encoding::kDenseCodes;
  group.dictionary = *Matrix::Dense(2, 2);
  const double cells[] = {0.5, 12, -2, 4};
  std::copy_n(cells, 4, group.dictionary.mutable_data());
  ExpectUnits(UnitsOfColumn(group, 0), -1, 4);
  ExpectUnits(UnitsOfColumn(group, 1), 2, 3);
  ExpectUnits(UnitsOf(group), -1, 24);
  group.dictionary = *ToElementType(group.dictionary, ElementType::kFloat32);
  ExpectUnits(UnitsOfColumn(group, 1), 2, 3);
  group.encoding = Encoding::kUncompressed;
  EXPECT_FALSE(UnitsOf(group).is_exact);
}

// What it says is true: sums and sums of products in two orders, of numbers near the limit.
TEST(ExactTest, SumsInAnyOrderHaveTheSameBits) {
  std::mt19937_64 random(3);
  int exact = 0, differ = 0;
  for (int round = 0; round < 2000; ++round) {
    const int digits = 1 + static_cast<int>(random() % 26), scale = static_cast<int>(random() % 40) - 20;
    std::vector<double> a(1000), b(1000);
    for (auto* numbers : {&a, &b})
      for (double& number : *numbers) {
        const auto whole = static_cast<double>(random() >> (64 - digits));
        number = std::ldexp(random() % 2 == 0 ? whole : -whole, scale);
      }
    const ExactUnits products = ProductsOf(UnitsOf(a), UnitsOf(b));
    double fused = 0, rounded = 0, backward = 0, pairs[2] = {0, 0};
    for (size_t i = 0; i < a.size(); ++i) {
      fused = std::fma(a[i], b[i], fused);
      rounded += a[i] * b[i];
      backward = std::fma(a[a.size() - 1 - i], b[a.size() - 1 - i], backward);
      pairs[i % 2] += a[i] * b[i];
    }
    const auto bits = [](double x) { return std::bit_cast<uint64_t>(x); };
    const bool same = bits(fused) == bits(rounded) && bits(fused) == bits(backward) &&
                      bits(fused) == bits(pairs[0] + pairs[1]);
    if (AddExactly(products, static_cast<double>(a.size()))) {
      ++exact;
      EXPECT_TRUE(same) << digits << " digits";
    }
    differ += !same;
  }
  EXPECT_GT(exact, 500);
  EXPECT_GT(differ, 10);
}

}  // namespace
}  // namespace heddle::ops
