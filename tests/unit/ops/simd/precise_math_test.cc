// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/cellwise/precise_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace heddle::ops {
namespace {

// Error of `value` in units of its last place, against the 64-bit significand of long double (exact to 0.001
// units).
double UlpError(double value, long double exact) {
  const double unit =
      std::nextafter(std::abs(value), std::numeric_limits<double>::infinity()) - std::abs(value);
  return static_cast<double>(std::abs(static_cast<long double>(value) - exact) / unit);
}

TEST(PreciseMathTest, IsRoundedCorrectlyUpToAThousandthOfAUnit) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    double u = static_cast<double>(random() >> 11) * 0x1p-53;
    if (i % 3 == 0) u = 1 - u * 1e-3;  // Results near zero take the slow way.
    if (i % 7 == 0) u *= 1e-9;
    if (u == 0) continue;
    ASSERT_LE(UlpError(PreciseLog(u), std::log(static_cast<long double>(u))), 0.502) << u;
    ASSERT_LE(UlpError(PreciseExp(-40 * u), std::exp(-40 * u + 0.0L)), 0.502) << u;
    const double angle = 6.283185307179586 * u;
    double sine, cosine;
    PreciseSineCosine(angle, &sine, &cosine);
    ASSERT_LE(UlpError(sine, std::sin(static_cast<long double>(angle))), 0.51) << angle;
    ASSERT_LE(UlpError(cosine, std::cos(static_cast<long double>(angle))), 0.51) << angle;
  }
}

TEST(PreciseMathTest, EdgesOfTheRange) {
  EXPECT_EQ(PreciseLog(0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(PreciseLog(1), 0);
  EXPECT_EQ(PreciseLog(2), 0x1.62e42fefa39efp-1);
  EXPECT_EQ(PreciseExp(0), 1);
  EXPECT_EQ(PreciseExp(1), 2.718281828459045);
  double sine, cosine;
  PreciseSineCosine(0, &sine, &cosine);
  EXPECT_EQ(sine, 0);
  EXPECT_EQ(cosine, 1);
  PreciseSineCosine(3.141592653589793, &sine, &cosine);
  EXPECT_EQ(sine, 1.2246467991473532e-16);
  EXPECT_EQ(cosine, -1);
}

}  // namespace
}  // namespace heddle::ops
