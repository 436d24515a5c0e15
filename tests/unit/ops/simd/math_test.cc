// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/cellwise/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "ops/base/cpu.h"
#include "tests/unit/ops/simd/ulp_error.h"

// Accuracy is measured against the C library's 64-bit-mantissa long double functions, which our code never
// calls.
namespace heddle::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kDenormal = std::numeric_limits<double>::denorm_min();

// Numbers of all kinds: special ones, uniform in [low, high], and any exponent with the given sign rule.
std::vector<double> Samples(double low, double high, bool any_exponent) {
  std::vector<double> samples = {0.0,
                                 -0.0,
                                 1.0,
                                 -1.0,
                                 0.5,
                                 -0.5,
                                 kDenormal,
                                 -kDenormal,
                                 1e-310,
                                 2.2250738585072014e-308,
                                 0.4375,
                                 0.6875,
                                 1.1875,
                                 2.4375,
                                 1e-20,
                                 1e20,
                                 0.9999999999999999,
                                 1.0000000000000002};
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(low, high);
  for (int i = 0; i < 40000; ++i) samples.push_back(uniform(random));
  std::uniform_real_distribution<double> near_zero(-1, 1);
  for (int i = 0; i < 10000; ++i) samples.push_back(near_zero(random));
  for (int i = 0; i < 10000; ++i) samples.push_back(1 + 0.01 * near_zero(random));
  for (int i = 0; any_exponent && i < 20000; ++i) {
    const double x = std::bit_cast<double>(random());
    if (std::isfinite(x)) samples.push_back(x);
  }
  return samples;
}

using Exact = long double (*)(long double);

void ExpectAccurate(UnaryCode code, Exact exact, double bound, double low, double high, bool any_exponent) {
  double worst = 0, worst_at = 0;
  for (double x : Samples(low, high, any_exponent)) {
    const double error = UlpError(Apply(code, x), exact(x));
    if (!(error <= worst)) {
      worst = error;
      worst_at = x;
    }
  }
  EXPECT_LE(worst, bound) << "at x = " << std::hexfloat << worst_at << std::defaultfloat << " (" << worst_at
                          << "), got " << Apply(code, worst_at);
  testing::Test::RecordProperty("worst_ulp", std::to_string(worst));
}

TEST(MathTest, ExponentialIsWithinOneUlp) {
  ExpectAccurate(UnaryCode::kExponential, expl, 1.0, -746, 710, true);
}
TEST(MathTest, LogarithmIsWithinOneUlp) { ExpectAccurate(UnaryCode::kLogarithm, logl, 1.0, 0, 1e6, true); }
TEST(MathTest, HyperbolicTangentIsWithinOneUlp) {
  ExpectAccurate(UnaryCode::kHyperbolicTangent, tanhl, 1.0, -25, 25, true);
}
TEST(MathTest, ErrorFunctionIsWithinOneUlp) {
  ExpectAccurate(UnaryCode::kErrorFunction, erfl, 1.0, -7, 7, true);
  ExpectAccurate(UnaryCode::kErrorFunction, erfl, 1.0, -1.3, 1.3, false);
}
TEST(MathTest, SigmoidIsWithinOneUlp) {
  const auto exact = [](long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); };
  ExpectAccurate(UnaryCode::kSigmoid, exact, 1.0, -750, 40, true);
  ExpectAccurate(UnaryCode::kSigmoid, exact, 1.0, -5, 5, true);
}
TEST(MathTest, HyperbolicSineIsWithinTwoUlp) {
  ExpectAccurate(UnaryCode::kHyperbolicSine, sinhl, 2.0, -711, 711, true);
}
TEST(MathTest, HyperbolicSineOfSmallNumbers) {
  ExpectAccurate(UnaryCode::kHyperbolicSine, sinhl, 2.0, -30, 30, true);
}
TEST(MathTest, HyperbolicCosineIsWithinTwoUlp) {
  ExpectAccurate(UnaryCode::kHyperbolicCosine, coshl, 2.0, -711, 711, true);
}
TEST(MathTest, HyperbolicCosineOfSmallNumbers) {
  ExpectAccurate(UnaryCode::kHyperbolicCosine, coshl, 2.0, -30, 30, true);
}
TEST(MathTest, SineIsWithinOneUlp) { ExpectAccurate(UnaryCode::kSine, sinl, 1.0, -1000, 1000, true); }
TEST(MathTest, CosineIsWithinOneUlp) { ExpectAccurate(UnaryCode::kCosine, cosl, 1.0, -1000, 1000, true); }
TEST(MathTest, TangentIsWithinOneUlp) { ExpectAccurate(UnaryCode::kTangent, tanl, 1.0, -1000, 1000, true); }
TEST(MathTest, ArcSineIsWithinTwoUlp) { ExpectAccurate(UnaryCode::kArcSine, asinl, 2.0, -1, 1, true); }
TEST(MathTest, ArcCosineIsWithinTwoUlp) { ExpectAccurate(UnaryCode::kArcCosine, acosl, 2.0, -1, 1, true); }
TEST(MathTest, ArcTangentIsWithinTwoUlp) {
  ExpectAccurate(UnaryCode::kArcTangent, atanl, 2.0, -10, 10, true);
}

// Multiples of pi/2 and the border of the slow range reduction are where digits cancel.
TEST(MathTest, AnglesNearMultiplesOfHalfPi) {
  for (UnaryCode code : {UnaryCode::kSine, UnaryCode::kCosine, UnaryCode::kTangent}) {
    const Exact exact = code == UnaryCode::kSine     ? static_cast<Exact>(sinl)
                        : code == UnaryCode::kCosine ? static_cast<Exact>(cosl)
                                                     : static_cast<Exact>(tanl);
    std::vector<double> angles = {
        0x1p30, 0x1p30 - 1, 0x1.fffffffffffffp29, 1e22, 6381956970095103.0 * 0x1p797, 0x1.921fb54442d18p+0};
    for (int64_t k = 1; k < 3000; ++k)
      angles.push_back(static_cast<double>(k * 1.5707963267948966192313216916398L));
    for (int64_t k = 1; k < 3000; ++k)
      angles.push_back(static_cast<double>((k * 359999 + 11) * 1.5707963267948966192313216916398L));
    for (double x : angles) {
      for (double signed_x : {x, -x})
        EXPECT_LE(UlpError(Apply(code, signed_x), exact(signed_x)), 1.0) << signed_x;
    }
  }
}

TEST(MathTest, SpecialValues) {
  EXPECT_EQ(Exp(-kInfinity), 0.0);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(0), 1.0);
  EXPECT_EQ(Exp(710), kInfinity);
  EXPECT_EQ(Exp(-745), kDenormal);
  EXPECT_EQ(Exp(-746), 0.0);
  EXPECT_EQ(Log(0.0), -kInfinity);
  EXPECT_EQ(Log(-0.0), -kInfinity);
  EXPECT_EQ(Log(kInfinity), kInfinity);
  EXPECT_EQ(Bits(Log(1.0)), Bits(0.0));
  EXPECT_TRUE(std::isnan(Log(-1.0)));
  EXPECT_TRUE(std::isnan(Log(-kInfinity)));
  EXPECT_EQ(Tanh(kInfinity), 1.0);
  EXPECT_EQ(Tanh(-kInfinity), -1.0);
  EXPECT_EQ(Erf(kInfinity), 1.0);
  EXPECT_EQ(Erf(-kInfinity), -1.0);
  EXPECT_EQ(Erf(6.5), 1.0);
  EXPECT_LE(UlpError(Erf(0.5), 0.520499877813046537683L), 1.0);
  EXPECT_EQ(Sigmoid(0.0), 0.5);
  EXPECT_EQ(Sigmoid(kInfinity), 1.0);
  EXPECT_EQ(Sigmoid(-kInfinity), 0.0);
  EXPECT_EQ(Sigmoid(-745), kDenormal);
  EXPECT_TRUE(std::isnan(Sigmoid(kNaN)));
  EXPECT_EQ(Sinh(-kInfinity), -kInfinity);
  EXPECT_EQ(Cosh(-kInfinity), kInfinity);
  EXPECT_EQ(Cosh(0), 1.0);
  EXPECT_EQ(Atan(kInfinity), 0x1.921fb54442d18p+0);
  EXPECT_EQ(Asin(1), 0x1.921fb54442d18p+0);
  EXPECT_EQ(Acos(-1), 0x1.921fb54442d18p+1);
  EXPECT_EQ(Bits(Acos(1)), Bits(0.0));
  EXPECT_TRUE(std::isnan(Asin(1.0000000000000002)));
  EXPECT_TRUE(std::isnan(Acos(-2)));
  EXPECT_TRUE(std::isnan(Sin(kInfinity)));
  EXPECT_TRUE(std::isnan(Tan(-kInfinity)));
  for (auto function : {Sin, Tan, Asin, Atan, Sinh, Tanh}) {
    EXPECT_EQ(Bits(function(-0.0)), Bits(-0.0));
    EXPECT_EQ(Bits(function(0.0)), Bits(0.0));
    EXPECT_EQ(function(kDenormal), kDenormal);
  }
  EXPECT_EQ(Bits(Erf(-0.0)), Bits(-0.0));
  EXPECT_EQ(Bits(Erf(0.0)), Bits(0.0));
  EXPECT_EQ(Erf(kDenormal), kDenormal);
  for (auto function : {Exp, Log, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Erf})
    EXPECT_TRUE(std::isnan(function(kNaN)));
}

// One lane alone, a full vector, any position in it, streamed or not: the same bits.
void ExpectSameBitsInEveryLane(const ElementwiseKernels& table, const ElementwiseKernels& expected) {
  std::vector<double> x = Samples(-50, 50, true), y = Samples(-3, 3, true), out(x.size());
  for (double special : {kInfinity, -kInfinity, kNaN, 2.0, 0.5}) x.push_back(special), y.push_back(special);
  y.resize(x.size());
  out.resize(x.size());
  const int64_t n = static_cast<int64_t>(x.size()) - 3;
  for (int code = 0; code < kUnaryCodes; ++code) {
    for (bool stream : {false, true}) {
      table.unary[code](x.data() + 3, out.data() + 3, n, stream);
      for (int64_t i = 3; i < n + 3; ++i) {
        double alone;
        expected.unary[code](&x[i], &alone, 1, false);
        ASSERT_EQ(Bits(out[i]), Bits(alone)) << "unary " << code << " of " << x[i];
      }
    }
  }
  for (int code = 0; code < kBinaryCodes; ++code) {
    for (bool stream : {false, true}) {
      table.binary[code][0](x.data() + 3, y.data() + 3, out.data() + 3, n, stream);
      for (int64_t i = 3; i < n + 3; ++i) {
        double alone;
        expected.binary[code][0](&x[i], &y[i], &alone, 1, false);
        ASSERT_EQ(Bits(out[i]), Bits(alone)) << "binary " << code << " of " << x[i] << " and " << y[i];
      }
    }
    for (double scalar : {0.0, 2.0, -1.5, kNaN, kInfinity}) {
      table.binary[code][1](x.data(), &scalar, out.data(), 1000, false);
      for (int64_t i = 0; i < 1000; ++i) {
        double alone;
        expected.binary[code][0](&x[i], &scalar, &alone, 1, false);
        ASSERT_EQ(Bits(out[i]), Bits(alone))
            << "binary " << code << " of " << x[i] << " and scalar " << scalar;
      }
      table.binary[code][2](&scalar, y.data(), out.data(), 1000, false);
      for (int64_t i = 0; i < 1000; ++i) {
        double alone;
        expected.binary[code][0](&scalar, &y[i], &alone, 1, false);
        ASSERT_EQ(Bits(out[i]), Bits(alone))
            << "binary " << code << " of scalar " << scalar << " and " << y[i];
      }
    }
  }
}

TEST(MathTest, Avx2GivesTheSameBitsInEveryLane) {
  ExpectSameBitsInEveryLane(kElementwiseKernelsAvx2, kElementwiseKernelsAvx2);
}

TEST(MathTest, Avx512GivesTheBitsOfAvx2) {
  // The other copy of the kernels can only run where the CPU has its instructions.
  if (!IsSupported(Cpu::kAvx512)) GTEST_SKIP() << "this machine has no AVX-512";
  ExpectSameBitsInEveryLane(kElementwiseKernelsAvx512, kElementwiseKernelsAvx2);
}

TEST(CpuTest, ForcingAnUnsupportedCpuIsAnError) {
  EXPECT_EQ(ForceCpu("sse9").message(), "unknown cpu, use auto, avx2 or avx512: sse9");
  EXPECT_TRUE(ForceCpu(Cpu::kAvx2).ok());
  EXPECT_EQ(SelectedCpu(), Cpu::kAvx2);
  if (!IsSupported(Cpu::kAvx512)) {
    EXPECT_EQ(ForceCpu("avx512").message(), "this machine cannot run avx512 code");
  }
  EXPECT_TRUE(ForceCpu("auto").ok());
}

}  // namespace
}  // namespace heddle::ops
