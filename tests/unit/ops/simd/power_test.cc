// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ops/base/cpu.h"
#include "ops/simd/cellwise/math.h"
#include "tests/unit/ops/simd/ulp_error.h"

// x ^ y: the bound of docs/numerics.md, section 7, results that are doubles, and the same bits in every
// kernel.
namespace heddle::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kDenormal = std::numeric_limits<double>::denorm_min();

bool IsByDefinition(double y) { return y == 2 || y == 3 || y == -1; }

struct Arguments {
  std::vector<double> x, y;

  void Add(double base, double exponent) {
    x.push_back(base);
    y.push_back(exponent);
  }
};

// Bases and exponents of all kinds, over the whole range of results and where digits cancel.
Arguments ManyArguments(int rounds) {
  Arguments arguments;
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int i = 0; i < rounds; ++i) {
    const double x = std::exp2(1000 * uniform(random));
    arguments.Add(x, uniform(random) * 1080 / (std::log2(x) + 1e-9));
    arguments.Add(x, (-1022 - 53 * std::fabs(uniform(random))) / std::log2(x));  // below 2^-1022
    arguments.Add(1 + 0.1 * uniform(random), 1000 * uniform(random));
    arguments.Add(1 + 1e-9 * uniform(random), 1e11 * uniform(random));
    arguments.Add(std::fabs(std::bit_cast<double>(random() & ~(uint64_t{1} << 62))), uniform(random));
    arguments.Add(-100 * std::fabs(uniform(random)), std::floor(uniform(random) * 30));
    arguments.Add(5 + 5 * uniform(random), uniform(random));
    arguments.Add(std::exp2(0.5 * uniform(random)), 2 * uniform(random));
    arguments.Add(std::floor(2 + 100 * std::fabs(uniform(random))), std::floor(uniform(random) * 30));
    arguments.Add(std::sqrt(0.8) + 1e-3 * uniform(random), 700 * uniform(random));  // borders of LogPair
    arguments.Add(std::sqrt(4.0 / 3) + 1e-3 * uniform(random), 700 * uniform(random));
    arguments.Add(std::sqrt(0.5) + 1e-3 * uniform(random), 700 * uniform(random));
  }
  for (double x : {kDenormal, 1e-310, 0.1, 3.0, 10.0, 1e300})
    for (double y : {-3.0, -0.5, 0.5, 1.0 / 3.0, 1.5, 4.0, 10.0}) arguments.Add(x, y);
  return arguments;
}

TEST(PowerTest, IsWithinTheBound) {
  const Arguments arguments = ManyArguments(20000);
  double worst = 0, worst_x = 0, worst_y = 0;
  for (size_t i = 0; i < arguments.x.size(); ++i) {
    const double x = arguments.x[i], y = arguments.y[i];
    if (IsByDefinition(y)) continue;
    const double error = UlpError(Power(x, y), powl(x, y));
    if (!(error <= worst)) worst = error, worst_x = x, worst_y = y;
  }
  EXPECT_LE(worst, 0.52) << std::hexfloat << worst_x << " ^ " << worst_y << " gives "
                         << Power(worst_x, worst_y);
  testing::Test::RecordProperty("worst_ulp", std::to_string(worst));
}

TEST(PowerTest, SquaresCubesAndInversesAreProductsAndQuotients) {
  std::mt19937_64 random(12);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int i = 0; i < 100000; ++i) {
    const double x = std::exp2(300 * uniform(random)) * (i % 2 == 0 ? 1 : -1);
    ASSERT_EQ(Power(x, 2), x * x) << x;
    ASSERT_EQ(Power(x, 3), (x * x) * x) << x;
    ASSERT_EQ(Power(x, -1), 1 / x) << x;
    ASSERT_EQ(Power(x, 1), x) << x;
    ASSERT_EQ(Power(x, 0), 1) << x;
  }
  for (double x : {kDenormal, -kDenormal, 1e-310, 0x1.fffffffffffffp-1023, 0x1.fffffffffffffp1023})
    ASSERT_EQ(Power(x, 1), x) << x;
}

TEST(PowerTest, PowersOfTenAreThoseOfTheirText) {
  for (int n = -330; n <= 310; ++n)
    EXPECT_EQ(Power(10, n), std::strtod(("1e" + std::to_string(n)).c_str(), nullptr)) << "10 ^ " << n;
  EXPECT_EQ(Power(2, 0.5), 1.4142135623730951);
  EXPECT_EQ(Power(0.5, 0.5), 0.70710678118654757);
}

TEST(PowerTest, ResultsThatAreDoublesAreExact) {
  for (int n = -1080; n <= 1024; ++n) {
    EXPECT_EQ(Power(2, n), std::ldexp(1.0, n)) << n;
    EXPECT_EQ(Power(-2, n), std::ldexp(n % 2 == 0 ? 1.0 : -1.0, n)) << n;
    EXPECT_EQ(Power(0.25, n), std::ldexp(1.0, -2 * n)) << n;
    if (n % 2 == 0 && n > -1074 && n < 1024) {
      EXPECT_EQ(Power(std::ldexp(1.0, n), 0.5), std::ldexp(1.0, n / 2)) << n;
    }
  }
  // All powers below 2^53 of whole numbers, and their roots where these are taken by an exact exponent.
  for (int64_t base = 2; base < 3000; ++base) {
    int64_t power = base;
    for (int n = 1; power < (int64_t{1} << 53); ++n) {
      ASSERT_EQ(Power(static_cast<double>(base), n), static_cast<double>(power)) << base << " ^ " << n;
      ASSERT_EQ(Power(static_cast<double>(-base), n), static_cast<double>(n % 2 == 0 ? power : -power));
      if ((n & (n - 1)) == 0) {
        ASSERT_EQ(Power(static_cast<double>(power), 1.0 / n), static_cast<double>(base)) << power << " " << n;
      }
      if (__builtin_mul_overflow(power, base, &power)) break;
    }
  }
  for (int64_t root = 1; root < 2000; ++root) {
    const auto x = static_cast<double>(root);
    ASSERT_EQ(Power(x * x, 1.5), x * x * x) << root;
    ASSERT_EQ(Power(x * x, -0.5), 1 / x) << root;
  }
}

TEST(PowerTest, SpecialValuesAreThoseOfIeee) {
  const double values[] = {0.0,        -0.0,        1.0,       -1.0,       2.0,
                           -2.0,       3.0,         -3.0,      0.5,        -0.5,
                           1.5,        -1.5,        0.9,       -1.1,       kNaN,
                           kInfinity,  -kInfinity,  kDenormal, -kDenormal, 1e300,
                           -1e300,     1e-300,      0x1p53,    0x1p54,     0x1p53 + 2,
                           0x1p52 + 1, -0x1p52 - 1, 4.0,       7.0,        0x1.fffffffffffffp1023};
  for (double x : values)
    for (double y : values) {
      const double expected = y == 2 ? x * x : std::pow(x, y);
      const double got = Power(x, y);
      if (std::isinf(expected) || expected == 0 || std::isnan(expected) || std::fabs(expected) == 1) {
        EXPECT_EQ(Bits(got), Bits(expected)) << x << " ^ " << y << ": " << got << " for " << expected;
      } else {
        EXPECT_LE(UlpError(got, expected), y == 3 ? 2.0 : 1.0) << x << " ^ " << y;
      }
    }
}

TEST(PowerTest, BorderOfOverflowAndUnderflow) {
  EXPECT_EQ(Power(0x1.fffffffffffffp1023, 1.0000000000000002), kInfinity);
  EXPECT_EQ(Power(2, 1023.9999999999999), 0x1.ffffffffffd3ap1023);
  EXPECT_EQ(Power(2, -1074.9999999999998), kDenormal);
  EXPECT_EQ(Power(2, -1075), 0);  // the tie goes to the even one
  EXPECT_EQ(Power(2, -1074.5), kDenormal);
  EXPECT_EQ(Power(2, -1073.5), kDenormal);
  EXPECT_EQ(Power(2, -1073.4), 2 * kDenormal);
  EXPECT_EQ(Power(1e-10, 1e300), 0);
  EXPECT_EQ(Power(-10, 1e15 + 1), -kInfinity);
}

// Every kernel of every instruction set, one lane alone and all of them: the same bits.
void ExpectBits(const ElementwiseKernels& table, const Arguments& arguments,
                const std::vector<double>& expected) {
  const auto n = static_cast<int64_t>(expected.size());
  std::vector<double> out(expected.size());
  table.Of(BinaryCode::kPower, Operands::kCellsCells)(arguments.x.data(), arguments.y.data(), out.data(), n,
                                                      false);
  for (size_t i = 0; i < out.size(); ++i) {
    ASSERT_EQ(Bits(out[i]), Bits(expected[i])) << arguments.x[i] << " ^ " << arguments.y[i];
    double alone;
    table.Of(BinaryCode::kPower, Operands::kCellsScalar)(&arguments.x[i], &arguments.y[i], &alone, 1, false);
    ASSERT_EQ(Bits(alone), Bits(expected[i])) << arguments.x[i] << " ^ " << arguments.y[i];
    table.Of(BinaryCode::kPower, Operands::kScalarCells)(&arguments.x[i], &arguments.y[i], &alone, 1, false);
    ASSERT_EQ(Bits(alone), Bits(expected[i])) << arguments.x[i] << " ^ " << arguments.y[i];
  }
}

TEST(PowerTest, EveryKernelGivesTheSameBits) {
  Arguments arguments = ManyArguments(2000);
  for (double x : {0.0, -0.0, 1.0, -1.0, kInfinity, -kInfinity, kNaN, 0.5, -2.5, kDenormal})
    for (double y : {0.0, -0.0, 1.0, 2.0, 3.0, -1.0, kInfinity, -kInfinity, kNaN, 0.5, -3.0})
      arguments.Add(x, y);
  std::vector<double> expected;
  for (size_t i = 0; i < arguments.x.size(); ++i) {
    double alone;
    kElementwiseKernelsAvx2.Of(BinaryCode::kPower, Operands::kCellsCells)(&arguments.x[i], &arguments.y[i],
                                                                          &alone, 1, false);
    expected.push_back(alone);
  }
  ExpectBits(kElementwiseKernelsAvx2, arguments, expected);
  if (IsSupported(Cpu::kAvx512)) ExpectBits(kElementwiseKernelsAvx512, arguments, expected);
}

}  // namespace
}  // namespace heddle::ops
