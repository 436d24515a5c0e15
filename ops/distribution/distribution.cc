// SPDX-License-Identifier: Apache-2.0
#include "ops/distribution/distribution.h"

#include <algorithm>
#include <bit>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/exponential.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <exception>
#include <limits>

#include "core/values/scalar.h"

namespace heddle::ops {
namespace {

namespace policies = boost::math::policies;
namespace math = boost::math;

// What is outside of a function's range is an infinity or NaN. Computed in doubles: with long doubles the
// bits would be those of the transcendental instructions of the processor.
using Policy = policies::policy<
    policies::domain_error<policies::ignore_error>, policies::pole_error<policies::ignore_error>,
    policies::overflow_error<policies::ignore_error>, policies::underflow_error<policies::ignore_error>,
    policies::denorm_error<policies::ignore_error>, policies::rounding_error<policies::ignore_error>,
    policies::evaluation_error<policies::ignore_error>,
    policies::indeterminate_result_error<policies::ignore_error>, policies::promote_double<false>,
    policies::promote_float<false>>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The incomplete beta function takes steps in the order of the root of the smaller of the degrees, and never
// ends where their squares leave the doubles.
constexpr double kMostDegreesOfBoth = 1e12;
// From this ratio of the degrees of F on, the side with more of them is a constant to the last digit.
constexpr double kConstantRatio = 1e16;

// The smallest x that can occur; the largest is infinite in all families.
double LowerEnd(DistributionFamily family) {
  return family == DistributionFamily::kNormal || family == DistributionFamily::kT ? -kInfinity : 0;
}

template <typename Law>
double ProbabilityBy(const Law& law, double x, Tail tail) {
  return tail == Tail::kLower ? math::cdf(law, x) : math::cdf(math::complement(law, x));
}

Tail Other(Tail tail) { return tail == Tail::kLower ? Tail::kUpper : Tail::kLower; }

double ProbabilityOfChiSquared(double degrees, double x, Tail tail) {
  if (x == 0 || x == kInfinity) return (x == 0) == (tail == Tail::kLower) ? 0 : 1;
  return ProbabilityBy(math::chi_squared_distribution<double, Policy>(degrees), x, tail);
}

// F is (A / a) / (B / b) with A and B of chi-squared distributions with a and b degrees.
double ProbabilityOfF(double a, double b, double x, Tail tail) {
  if (b >= kConstantRatio * std::max(a, 1.0)) return ProbabilityOfChiSquared(a, x * a, tail);
  if (a >= kConstantRatio * std::max(b, 1.0)) return ProbabilityOfChiSquared(b, b / x, Other(tail));
  return ProbabilityBy(math::fisher_f_distribution<double, Policy>(a, b), x, tail);
}

// P(X > x) of the t distribution for x > 0. Far out, where x * x is no double any more, it falls as
// x^-degrees.
double UpperTailOfT(double degrees, double x) {
  constexpr double kFarOut = 1e150;
  const math::students_t_distribution<double, Policy> law(degrees);
  if (x <= kFarOut) return math::cdf(math::complement(law, x));
  return math::cdf(math::complement(law, kFarOut)) * std::pow(x / kFarOut, -degrees);
}

double ProbabilityOfT(double degrees, double x, Tail tail) {
  if (x < 0) return ProbabilityOfT(degrees, -x, Other(tail));
  if (tail == Tail::kUpper) return UpperTailOfT(degrees, x);
  return math::cdf(math::students_t_distribution<double, Policy>(degrees), x);
}

// Of an x inside the range. Boost's functions with doubles as arguments end after a bounded number of steps.
double ProbabilityInside(const Distribution& d, double x, Tail tail) {
  switch (d.family) {
    case DistributionFamily::kNormal:
      return ProbabilityBy(math::normal_distribution<double, Policy>(d.mean, d.sd), x, tail);
    case DistributionFamily::kExponential:
      return ProbabilityBy(math::exponential_distribution<double, Policy>(d.rate), x, tail);
    case DistributionFamily::kChiSquared: return ProbabilityOfChiSquared(d.degrees, x, tail);
    case DistributionFamily::kF: return ProbabilityOfF(d.degrees, d.denominator, x, tail);
    case DistributionFamily::kT: break;
  }
  return ProbabilityOfT(d.degrees, x, tail);
}

double DensityInside(const Distribution& d, double x) {
  switch (d.family) {
    case DistributionFamily::kNormal:
      return math::pdf(math::normal_distribution<double, Policy>(d.mean, d.sd), x);
    case DistributionFamily::kExponential:
      return math::pdf(math::exponential_distribution<double, Policy>(d.rate), x);
    case DistributionFamily::kChiSquared:
      return math::pdf(math::chi_squared_distribution<double, Policy>(d.degrees), x);
    case DistributionFamily::kF:
      return math::pdf(math::fisher_f_distribution<double, Policy>(d.degrees, d.denominator), x);
    case DistributionFamily::kT: break;
  }
  return math::pdf(math::students_t_distribution<double, Policy>(d.degrees), x);
}

// The smallest x > 0 with P(X <= x) >= p, or with P(X > x) <= p: halves the range of doubles, whose bits are
// in their order, 63 times. Boost's own inverses search for a bracket, which may not end, and throw whatever
// the policy is.
double PositiveQuantile(const Distribution& distribution, double p, Tail tail) {
  uint64_t below = 0;
  auto above = std::bit_cast<uint64_t>(kInfinity);
  while (above - below > 1) {
    const uint64_t middle = below + (above - below) / 2;
    const double found = ProbabilityInside(distribution, std::bit_cast<double>(middle), tail);
    if (std::isnan(found)) return found;
    (tail == Tail::kLower ? found >= p : found <= p) ? above = middle : below = middle;
  }
  return std::bit_cast<double>(above);
}

// 0 < p < 1. The tail that has less of the probability loses no digits.
double QuantileInside(const Distribution& d, double p) {
  switch (d.family) {
    case DistributionFamily::kNormal:  // in closed form
      return math::quantile(math::normal_distribution<double, Policy>(d.mean, d.sd), p);
    case DistributionFamily::kExponential:
      return math::quantile(math::exponential_distribution<double, Policy>(d.rate), p);
    case DistributionFamily::kT:
      if (p == 0.5) return 0;
      return p < 0.5 ? -PositiveQuantile(d, p, Tail::kUpper) : PositiveQuantile(d, 1 - p, Tail::kUpper);
    case DistributionFamily::kChiSquared:
    case DistributionFamily::kF: break;
  }
  return p <= 0.5 ? PositiveQuantile(d, p, Tail::kLower) : PositiveQuantile(d, 1 - p, Tail::kUpper);
}

// compute(), or why there is no value.
template <typename Compute>
Result<double> Computed(const Distribution& d, const Compute& compute) {
  if (d.family == DistributionFamily::kF && std::min(d.degrees, d.denominator) > kMostDegreesOfBoth &&
      std::max(d.degrees, d.denominator) < kConstantRatio * std::min(d.degrees, d.denominator))
    return FailedPrecondition("the F distribution with {} and {} degrees of freedom is not computed",
                              Scalar(d.degrees).ToText(), Scalar(d.denominator).ToText())
        .WithNote(
            "one of the two may be above 1e12; with both so large the distribution is a normal one with "
            "mean 1 and variance 2 / df1 + 2 / df2");
  try {
    const double found = compute();
    if (!std::isnan(found)) return found;
    return FailedPrecondition("the distribution has no value there that can be computed");
  } catch (const std::exception& error) {
    return FailedPrecondition("the distribution has no value there that can be computed: {}", error.what());
  }
}

}  // namespace

Result<double> Probability(const Distribution& distribution, double x, Tail tail) {
  if (std::isnan(x)) return x;
  if (x <= LowerEnd(distribution.family)) return tail == Tail::kLower ? 0.0 : 1.0;
  if (x == kInfinity) return tail == Tail::kLower ? 1.0 : 0.0;
  return Computed(distribution, [&] { return ProbabilityInside(distribution, x, tail); });
}

Result<double> Density(const Distribution& distribution, double x) {
  if (std::isnan(x)) return x;
  if (x < LowerEnd(distribution.family) || std::isinf(x)) return 0.0;
  if (x == 0) {  // Where Boost.Math says "overflow" of what is not finite.
    const bool has_end = distribution.family == DistributionFamily::kChiSquared ||
                         distribution.family == DistributionFamily::kF;
    if (has_end && distribution.degrees < 2) return kInfinity;
  }
  return Computed(distribution, [&] { return DensityInside(distribution, x); });
}

Result<double> Quantile(const Distribution& distribution, double p) {
  if (std::isnan(p)) return p;
  if (p == 0) return LowerEnd(distribution.family);
  if (p == 1) return kInfinity;
  return Computed(distribution, [&] { return QuantileInside(distribution, p); });
}

}  // namespace heddle::ops
