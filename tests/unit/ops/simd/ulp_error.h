// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// How tests of mathematical functions compare: errors against the C library's long double functions (64 bits
// of mantissa), which our code never calls, and bits.
namespace heddle::ops {

/// |x - exact| in units of the last place that a double of the size of `exact` has.
inline double UlpError(double x, long double exact) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (std::isnan(x) || std::isnan(exact)) return std::isnan(x) && std::isnan(exact) ? 0 : kInfinity;
  const double rounded = static_cast<double>(exact);
  if (std::isinf(x) || std::isinf(rounded)) {
    if (x == rounded) return 0;
    // One step across the border to infinity is a rounding error.
    return std::min(std::fabs(x), std::fabs(rounded)) == std::numeric_limits<double>::max() ? 1 : kInfinity;
  }
  int exponent = 0;
  std::frexp(exact, &exponent);
  return static_cast<double>(std::ldexp(std::fabs(x - exact), -std::max(exponent - 53, -1074)));
}

/// Bits, with every NaN alike.
inline uint64_t Bits(double x) { return std::isnan(x) ? 1 : std::bit_cast<uint64_t>(x); }

}  // namespace heddle::ops
