// SPDX-License-Identifier: Apache-2.0
#include "ops/distribution/distribution.h"

#include <cmath>
#include <random>

#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Attributes;
using testing::Inputs;
using testing::Invocation;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// first, second: mean and sd; rate; degrees of freedom.
struct Case {
  DistributionFamily family;
  double first, second, x, lower, upper;
};

Distribution Of(DistributionFamily family, double first, double second) {
  Distribution d{.family = family};
  if (family == DistributionFamily::kNormal) {
    d.mean = first;
    d.sd = second;
  } else if (family == DistributionFamily::kExponential) {
    d.rate = first;
  } else {
    d.degrees = first;
    d.denominator = second;
  }
  return d;
}

void ExpectClose(double x, double expected, double tolerance = 1e-12) {
  if (expected == 0 || std::isinf(expected)) {
    EXPECT_EQ(x, expected);
  } else {
    EXPECT_NEAR(x / expected, 1, tolerance) << x << " " << expected;
  }
}

// SciPy 1.10.
constexpr Case kCases[] = {
    {DistributionFamily::kNormal, 0.0, 1.0, -8.0, 6.22096057427174e-16, 0.9999999999999993},
    {DistributionFamily::kNormal, 0.0, 1.0, -1.5, 0.06680720126885807, 0.9331927987311419},
    {DistributionFamily::kNormal, 0.0, 1.0, 0.3, 0.6179114221889526, 0.3820885778110474},
    {DistributionFamily::kNormal, 0.0, 1.0, 9.0, 1.0, 1.1285884059538324e-19},
    {DistributionFamily::kNormal, 0.0, 1.0, 37.0, 1.0, 5.7255712225239266e-300},
    {DistributionFamily::kNormal, 1.0, 2.0, 1.5, 0.5987063256829237, 0.4012936743170763},
    {DistributionFamily::kExponential, 0.5, 0.0, 1e-09, 4.99999999875e-10, 0.9999999995000001},
    {DistributionFamily::kExponential, 0.5, 0.0, 2.0, 0.6321205588285577, 0.3678794411714424},
    {DistributionFamily::kExponential, 0.5, 0.0, 700.0, 1.0, 9.92959039626498e-153},
    {DistributionFamily::kChiSquared, 1.0, 0.0, 0.001, 0.02522712063003961, 0.9747728793699604},
    {DistributionFamily::kChiSquared, 1.9, 0.0, 20.0, 0.999960949984729, 3.905001527099853e-05},
    {DistributionFamily::kChiSquared, 5.0, 0.0, 3.7, 0.4066360382181922, 0.5933639617818078},
    {DistributionFamily::kChiSquared, 100.0, 0.0, 100.0, 0.5188083154720433, 0.48119168452795674},
    {DistributionFamily::kChiSquared, 100.0, 0.0, 400.0, 1.0, 1.6927979958857254e-37},
    {DistributionFamily::kF, 3.0, 10.0, 2.5, 0.8809604373417219, 0.11903956265827814},
    {DistributionFamily::kF, 20.0, 2.5, 0.01, 9.736212623095773e-12, 0.9999999999902638},
    {DistributionFamily::kF, 1.0, 1.0, 50.0, 0.9105614780496843, 0.08943852195031553},
    {DistributionFamily::kF, 4.0, 300.0, 8.0, 0.9999961396719159, 3.860328084079031e-06},
    {DistributionFamily::kT, 1.0, 0.0, -8.0, 0.03958342416056554, 0.9604165758394345},
    {DistributionFamily::kT, 8.0, 0.0, 2.1, 0.9655312378523438, 0.03446876214765608},
    {DistributionFamily::kT, 2.5, 0.0, 0.3, 0.6063288142524015, 0.39367118574759863},
    {DistributionFamily::kT, 100.0, 0.0, -30.0, 4.190166279344168e-52, 1.0},
};

TEST(DistributionTest, ProbabilitiesAreThoseOfScipyInBothTails) {
  for (const Case& c : kCases) {
    const Distribution d = Of(c.family, c.first, c.second);
    ExpectClose(*Probability(d, c.x, Tail::kLower), c.lower);
    ExpectClose(*Probability(d, c.x, Tail::kUpper), c.upper);
  }
}

TEST(DistributionTest, QuantilesUndoProbabilities) {
  for (const Case& c : kCases) {
    const Distribution d = Of(c.family, c.first, c.second);
    for (const double p : {1e-12, 0.01, 0.3, 0.5, 0.9, 0.999})
      EXPECT_NEAR(*Probability(d, *Quantile(d, p), Tail::kLower) / p, 1, 1e-11)
          << static_cast<int>(c.family) << " " << c.first << " " << p;
  }
}

TEST(DistributionTest, EndsOfTheRange) {
  const bool below_zero[] = {true, false, false, false, true};
  for (int family = 0; family < 5; ++family) {
    const Distribution d = Of(static_cast<DistributionFamily>(family), 1, 2);
    EXPECT_EQ(*Quantile(d, 0), below_zero[family] ? -kInfinity : 0);
    EXPECT_EQ(*Quantile(d, 1), kInfinity);
    EXPECT_EQ(*Probability(d, -kInfinity, Tail::kLower), 0);
    EXPECT_EQ(*Probability(d, -kInfinity, Tail::kUpper), 1);
    EXPECT_EQ(*Probability(d, kInfinity, Tail::kLower), 1);
    EXPECT_EQ(*Probability(d, kInfinity, Tail::kUpper), 0);
    EXPECT_EQ(*Probability(d, -3, Tail::kLower) > 0, below_zero[family]);
    EXPECT_TRUE(std::isnan(*Probability(d, NAN, Tail::kLower)));
    EXPECT_TRUE(std::isnan(*Quantile(d, NAN)));
  }
}

// Degrees of freedom of every size, probabilities down to 1e-300: each quantile is found within a bounded
// number of steps, or refused. Boost's own inverse of the F distribution throws on some of these and never
// ends on others.
TEST(DistributionTest, EveryQuantileEnds) {
  std::mt19937_64 random(7);
  const auto uniform = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
  const auto of_any_size = [&](double digits) { return std::pow(10, (2 * uniform() - 1) * digits); };
  constexpr DistributionFamily kInverted[] = {DistributionFamily::kChiSquared, DistributionFamily::kF,
                                              DistributionFamily::kT};
  int found = 0;
  for (int i = 0; i < 600; ++i) {
    const double digits = i % 2 == 0 ? 8 : 300;
    const Distribution d = {
        .family = kInverted[i % 3], .degrees = of_any_size(digits), .denominator = of_any_size(digits)};
    const double p = i % 4 == 0 ? uniform() : std::pow(10, -300 * uniform());
    SCOPED_TRACE(fmt::format("{} {} {} {}", i % 3, d.degrees, d.denominator, p));
    const Result<double> x = Quantile(d, p);
    if (!x.ok()) {
      EXPECT_EQ(d.family, DistributionFamily::kF);
      EXPECT_GT(std::min(d.degrees, d.denominator), 1e12);
      continue;
    }
    ++found;
    if (digits > 8 || std::isinf(*x) || *x == 0 || std::abs(*x) < 1e-300) continue;
    // The probability jumps between two neighbours, where there are many degrees of freedom.
    const Tail tail = d.family != DistributionFamily::kT && p > 0.5 ? Tail::kUpper : Tail::kLower;
    const double goal = tail == Tail::kUpper ? 1 - p : p;
    const double below = *Probability(d, std::nextafter(*x, -kInfinity), tail);
    const double above = *Probability(d, std::nextafter(*x, kInfinity), tail);
    EXPECT_LE(std::min(below, above), goal * (1 + 1e-6));
    EXPECT_GE(std::max(below, above), goal * (1 - 1e-6));
  }
  EXPECT_GT(found, 500);
}

// One side with so many degrees of freedom that it is a constant: the distributions that tables have instead.
TEST(DistributionTest, ManyDegreesOfFreedom) {
  const Distribution chi_squared = {.family = DistributionFamily::kChiSquared, .degrees = 5};
  const Distribution f = {.family = DistributionFamily::kF, .degrees = 5, .denominator = 1e300};
  const Distribution turned = {.family = DistributionFamily::kF, .degrees = 1e300, .denominator = 5};
  ExpectClose(*Quantile(f, 0.9), *Quantile(chi_squared, 0.9) / 5);
  ExpectClose(*Quantile(turned, 0.9), 5 / *Quantile(chi_squared, 1 - 0.9));
  const Distribution heavy = {.family = DistributionFamily::kT, .degrees = 0.01};
  ExpectClose(*Probability(heavy, 1e160, Tail::kUpper) / *Probability(heavy, 1e140, Tail::kUpper),
              std::pow(10, -0.2));
  EXPECT_EQ(*Quantile(heavy, 0.9999999), kInfinity);
}

// target, mean, sd, df, df1, df2, rate, lower.tail
Invocation Call(std::string name, Inputs inputs, Attributes attributes = {}) {
  return Invocation(std::move(name), std::move(inputs), std::move(attributes));
}
double Evaluate(std::string name, Inputs inputs, Attributes attributes = {}) {
  return Call(std::move(name), std::move(inputs), std::move(attributes)).Run().scalar().AsDouble();
}
std::optional<Value> S(Scalar scalar) { return Value(std::move(scalar)); }
const std::optional<Value> kNone;

// The numbers that SystemDS 3.4 prints, whose quantiles are good to nine digits.
void ExpectPrinted(double x, double printed) { ExpectClose(x, printed, 1e-9); }

TEST(DistributionOperatorsTest, NamesAndParametersAreThoseOfTheLanguage) {
  ExpectPrinted(Evaluate("pnorm", {S(1.5)}), 0.9331927987311419);
  ExpectPrinted(Evaluate("pnorm", {S(1.5), S(1), S(2)}), 0.5987063256829237);
  ExpectPrinted(Evaluate("pnorm", {S(1.5), S(1), S(2), kNone, kNone, kNone, kNone, S(false)}),
                0.4012936743170763);
  ExpectPrinted(Evaluate("cdf", {S(1.5), S(1), S(2)}, {{"dist", Scalar("NORMAL")}}), 0.5987063256829237);
  ExpectPrinted(Evaluate("qnorm", {S(0.975), S(3), S(0.5)}), 3.979981992270027);
  ExpectPrinted(Evaluate("icdf", {S(0.3), kNone, kNone, S(3)}, {{"dist", Scalar("t")}}), -0.5843897274398189);
  ExpectPrinted(Evaluate("icdf", {S(0.3), kNone, kNone, kNone, S(3), S(7)}, {{"dist", Scalar("f")}}),
                0.49029710675088495);
  ExpectPrinted(Evaluate("pexp", {S(2), kNone, kNone, kNone, kNone, kNone, S(0.5)}), 0.6321205588285577);
  ExpectPrinted(Evaluate("qexp", {S(0.3), kNone, kNone, kNone, kNone, kNone, S(0.5)}), 0.7133498878774649);
  ExpectPrinted(Evaluate("pchisq", {S(20), kNone, kNone, S(1)}), 0.999992255783569);
  ExpectPrinted(Evaluate("qchisq", {S(0.4), kNone, kNone, S(5)}), 3.6554996231414205);
  ExpectPrinted(Evaluate("pf", {S(2.5), kNone, kNone, kNone, S(3), S(10)}), 0.8809604373417216);
  ExpectPrinted(Evaluate("qf", {S(0.9), kNone, kNone, kNone, S(3), S(10)}), 2.7276731411336534);
  ExpectPrinted(Evaluate("pt", {S(2.1), kNone, kNone, S(8)}), 0.9655312378523441);
  ExpectPrinted(Evaluate("qt", {S(0.9), kNone, kNone, S(8)}), 1.3968153097425848);
}

TEST(DistributionOperatorsTest, ErrorsNameTheParameter) {
  EXPECT_EQ(Call("pt", {S(1)}).Error(), "pt: df is missing");
  EXPECT_EQ(Call("qf", {S(0.5), kNone, kNone, S(2), S(3)}).Error(), "qf: df2 is missing");
  EXPECT_EQ(Call("cdf", {S(1)}, {{"dist", Scalar("cauchy")}}).Error(),
            "cdf: unknown distribution dist=\"cauchy\"");
  EXPECT_EQ(Call("pnorm", {S(1), S(0), S(-1)}).Error(), "pnorm: sd must be positive and finite, not -1");
  EXPECT_EQ(Call("pnorm", {S(1), S(INFINITY)}).Error(), "pnorm: mean must be finite, not Infinity");
  EXPECT_EQ(Call("pchisq", {S(1), kNone, kNone, S(NAN)}).Error(),
            "pchisq: df must be positive and finite, not NaN");
  EXPECT_EQ(Call("pnorm", {S("a")}).Error(), "pnorm: target must be a number, not the string \"a\"");
  EXPECT_EQ(Call("pnorm", {Value(testing::Rows({{1}}))}).Error(),
            "pnorm: target must be a scalar, not a matrix");
  StatusCode code = StatusCode::kOk;
  EXPECT_EQ(Call("qnorm", {S(1.5)}).RunTimeError(&code),
            "qnorm: target must be a probability between 0 and 1, not 1.5");
  EXPECT_EQ(code, StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace heddle::ops
