// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/status.h"

// Probability distributions, by Boost.Math, whose headers are known to distribution.cc alone.
namespace heddle::ops {

enum class DistributionFamily : uint8_t { kNormal, kExponential, kChiSquared, kF, kT };

/// A distribution with its parameters; those that its family does not have are not looked at. All are
/// finite, and sd, rate and the degrees of freedom positive.
struct Distribution {
  DistributionFamily family = DistributionFamily::kNormal;
  double mean = 0, sd = 1;  ///< kNormal
  double rate = 1;          ///< kExponential
  double degrees = 1;       ///< kChiSquared, kT, and of the numerator kF; need not be whole.
  double denominator = 1;   ///< Degrees of freedom of the denominator, kF.
};

enum class Tail : uint8_t { kLower, kUpper };

/// P(X <= x), or P(X > x) without the loss of digits that 1 - P(X <= x) has. NaN of NaN.
/// Error: a few units in the last place; some hundred where the degrees of freedom are large.
/// kFailedPrecondition where there is no value that can be computed: of F with more than 1e12 degrees of
/// freedom on both sides.
Result<double> Probability(const Distribution& distribution, double x, Tail tail);

/// The derivative of P(X <= x) by x, from above at an end of the range: 0 outside of the range, Infinity of
/// the chi-squared distribution and F with fewer than two degrees of freedom at 0. NaN of NaN. Fails as
/// Probability does.
Result<double> Density(const Distribution& distribution, double x);

/// The x with P(X <= x) = p, 0 <= p <= 1: ends of the range, also infinite ones, for 0 and 1. NaN of NaN.
/// Ends after 64 calls of Probability at most, and fails where that does.
Result<double> Quantile(const Distribution& distribution, double p);

}  // namespace heddle::ops
