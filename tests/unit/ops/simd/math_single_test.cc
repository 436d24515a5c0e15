// SPDX-License-Identifier: Apache-2.0
// The functions of single precision against those of doubles.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ops/base/cell_codes.h"
#include "ops/base/cpu.h"
#include "ops/simd/cellwise/elementwise.h"
#include "ops/simd/cellwise/single_functions.h"

namespace heddle::ops {
namespace {

constexpr int64_t kTogether = 4096;
// Of all 2^32 floats every so many: a prime, so that all exponents and low bits occur.
constexpr uint64_t kStep = 1009;

// Units of the last place of the float next to the exact result, below 2^-126 of the least float.
double Ulps(double found, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(found - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

// The largest error of `code` over floats, by the function of doubles. Cells that are widened and cells that
// are not have the same results.
double WorstError(UnaryCode code, uint64_t step) {
  const ElementwiseKernels& kernels = SelectedElementwiseKernels();
  std::vector<double> x(kTogether), found(kTogether), exact(kTogether);
  std::vector<float> singles(kTogether);
  double worst = 0;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32;) {
    int64_t count = 0;
    for (; count < kTogether && bits < uint64_t{1} << 32; bits += step)
      x[static_cast<size_t>(count++)] =
          static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    kernels.Of(InSingles(code))(x.data(), found.data(), count, false);
    kernels.Of(code)(x.data(), exact.data(), count, false);
    kernels.narrow(x.data(), singles.data(), count);
    SelectedSingleFunctions().Of(InSingles(code))(singles.data(), singles.data(), count);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const double nearest = static_cast<double>(static_cast<float>(exact[i]));
      EXPECT_EQ(std::isnan(found[i]), std::isnan(nearest)) << x[i];
      EXPECT_TRUE(std::isnan(found[i]) ? std::isnan(singles[i])
                                       : std::bit_cast<uint32_t>(singles[i]) ==
                                             std::bit_cast<uint32_t>(static_cast<float>(found[i])))
          << x[i];
      if (std::isnan(nearest) || found[i] == nearest) continue;
      // A result next to the largest float may be Infinity, and the other way round.
      if (std::isinf(found[i]) || std::isinf(nearest))
        EXPECT_GE(std::min(std::abs(found[i]), std::abs(nearest)), 0x1.fffffcp127) << x[i];
      else
        worst = std::max(worst, Ulps(found[i], exact[i]));
    }
  }
  return worst;
}

class MathSingleTest : public testing::TestWithParam<Cpu> {
 protected:
  void SetUp() override {
    if (!IsSupported(GetParam())) GTEST_SKIP() << "this machine cannot run " << Name(GetParam());
    ASSERT_TRUE(ForceCpu(GetParam()).ok());
  }
  void TearDown() override { ASSERT_TRUE(ForceCpu("auto").ok()); }
};

// The bounds of docs/numerics.md, section 9.
TEST_P(MathSingleTest, ErrorsAreAsThePageSays) {
  const struct {
    UnaryCode code;
    double bound;
  } kFunctions[] = {{UnaryCode::kExponential, 1.0},
                    {UnaryCode::kLogarithm, 0.85},
                    {UnaryCode::kHyperbolicTangent, 1.3},
                    {UnaryCode::kSigmoid, 2.3},
                    {UnaryCode::kErrorFunction, 1.0}};
  for (const auto& [code, bound] : kFunctions) {
    const double worst = WorstError(code, kStep);
    EXPECT_LE(worst, bound) << static_cast<int>(code);
    RecordProperty("worst_" + std::to_string(static_cast<int>(code)), std::to_string(worst));
  }
}

TEST_P(MathSingleTest, SpecialArguments) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto at = [](UnaryCode code, float x) {
    const double cell = static_cast<double>(x);
    double result;
    SelectedElementwiseKernels().Of(InSingles(code))(&cell, &result, 1, false);
    return result;
  };
  using enum UnaryCode;
  EXPECT_EQ(at(kExponential, -0.0F), 1.0);
  EXPECT_EQ(at(kExponential, -kInfinity), 0.0);
  EXPECT_EQ(at(kExponential, kInfinity), static_cast<double>(kInfinity));
  EXPECT_EQ(at(kLogarithm, 0.0F), static_cast<double>(-kInfinity));
  EXPECT_EQ(at(kLogarithm, -0.0F), static_cast<double>(-kInfinity));
  EXPECT_EQ(at(kLogarithm, 1.0F), 0.0);
  EXPECT_TRUE(std::isnan(at(kLogarithm, -1e-44F)));
  EXPECT_EQ(at(kLogarithm, kInfinity), static_cast<double>(kInfinity));
  EXPECT_EQ(at(kSigmoid, 0.0F), 0.5);
  EXPECT_EQ(at(kSigmoid, -kInfinity), 0.0);
  EXPECT_EQ(at(kSigmoid, kInfinity), 1.0);
  for (const UnaryCode code : {kHyperbolicTangent, kErrorFunction}) {
    EXPECT_EQ(std::bit_cast<uint64_t>(at(code, -0.0F)), std::bit_cast<uint64_t>(-0.0));
    EXPECT_EQ(at(code, kInfinity), 1.0);
    EXPECT_EQ(at(code, -kInfinity), -1.0);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpus, MathSingleTest, testing::Values(Cpu::kAvx2, Cpu::kAvx512),
                         [](const auto& test) { return std::string(Name(test.param)); });

// Both tables give the same bits, in any lane.
TEST(MathSingleTablesTest, EveryTargetHasTheSameBits) {
  if (!IsSupported(Cpu::kAvx512)) GTEST_SKIP() << "this machine has no AVX-512";
  std::vector<double> x, narrow, wide;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 100'003)
    x.push_back(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
  narrow.resize(x.size());
  wide.resize(x.size());
  using enum UnaryCode;
  for (const UnaryCode code : {kSingleExponential, kSingleLogarithm, kSingleHyperbolicTangent, kSingleSigmoid,
                               kSingleErrorFunction}) {
    kElementwiseKernelsAvx2.Of(code)(x.data(), narrow.data(), static_cast<int64_t>(x.size()), false);
    kElementwiseKernelsAvx512.Of(code)(x.data(), wide.data(), static_cast<int64_t>(x.size()), false);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(narrow[i]) && std::isnan(wide[i])) continue;
      ASSERT_EQ(std::bit_cast<uint64_t>(narrow[i]), std::bit_cast<uint64_t>(wide[i])) << x[i];
    }
  }
}

}  // namespace
}  // namespace heddle::ops
