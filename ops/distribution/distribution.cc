// SPDX-License-Identifier: Apache-2.0
#include "ops/distribution/distribution.h"

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/exponential.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

namespace heddle::ops {
namespace {

namespace policies = boost::math::policies;
namespace math = boost::math;

// Nothing throws: what is outside of a function's range is an infinity or NaN. Computed in doubles: with long
// doubles the bits would be those of the transcendental instructions of the processor.
using Policy = policies::policy<
    policies::domain_error<policies::ignore_error>, policies::pole_error<policies::ignore_error>,
    policies::overflow_error<policies::ignore_error>, policies::underflow_error<policies::ignore_error>,
    policies::denorm_error<policies::ignore_error>, policies::rounding_error<policies::ignore_error>,
    policies::evaluation_error<policies::ignore_error>,
    policies::indeterminate_result_error<policies::ignore_error>, policies::promote_double<false>,
    policies::promote_float<false>>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <typename Law>
double ProbabilityOf(const Law& law, double x, Tail tail) {
  return tail == Tail::kLower ? math::cdf(law, x) : math::cdf(math::complement(law, x));
}

// The smallest x that can occur; the largest is infinite in all families.
double LowerEnd(DistributionFamily family) {
  return family == DistributionFamily::kNormal || family == DistributionFamily::kT ? -kInfinity : 0;
}

// Calls use(law) with the law of Boost's that the distribution is.
template <typename Use>
double WithLaw(const Distribution& d, const Use& use) {
  switch (d.family) {
    case DistributionFamily::kNormal: return use(math::normal_distribution<double, Policy>(d.mean, d.sd));
    case DistributionFamily::kExponential: return use(math::exponential_distribution<double, Policy>(d.rate));
    case DistributionFamily::kChiSquared:
      return use(math::chi_squared_distribution<double, Policy>(d.degrees));
    case DistributionFamily::kF:
      return use(math::fisher_f_distribution<double, Policy>(d.degrees, d.denominator));
    case DistributionFamily::kT: break;
  }
  return use(math::students_t_distribution<double, Policy>(d.degrees));
}

}  // namespace

double Probability(const Distribution& distribution, double x, Tail tail) {
  if (std::isnan(x)) return x;
  if (x <= LowerEnd(distribution.family)) return tail == Tail::kLower ? 0 : 1;
  if (x == kInfinity) return tail == Tail::kLower ? 1 : 0;
  return WithLaw(distribution, [&](const auto& law) { return ProbabilityOf(law, x, tail); });
}

double Density(const Distribution& distribution, double x) {
  if (std::isnan(x)) return x;
  if (x < LowerEnd(distribution.family) || std::isinf(x)) return 0;
  if (x == 0) {  // Where Boost.Math says "overflow" of what is not finite.
    const bool has_end = distribution.family == DistributionFamily::kChiSquared ||
                         distribution.family == DistributionFamily::kF;
    if (has_end && distribution.degrees < 2) return kInfinity;
  }
  return WithLaw(distribution, [&](const auto& law) { return math::pdf(law, x); });
}

double Quantile(const Distribution& distribution, double p) {
  if (std::isnan(p)) return p;
  if (p == 0) return LowerEnd(distribution.family);
  if (p == 1) return kInfinity;
  return WithLaw(distribution, [&](const auto& law) { return math::quantile(law, p); });
}

}  // namespace heddle::ops
