// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace heddle {

/// digits * 10^exponent.
struct Decimal {
  uint64_t digits = 0;
  int exponent = 0;
};

/// Of the decimals that are read back as x, those with the fewest digits, and of them the nearest to x;
/// zeros may stand at the end of its digits. `x` is positive and finite.
///
/// Source:  R. Giulietti, "The Schubfach way to render doubles", 2020, which Java's Double.toString follows,
///          too.
Decimal ShortestDecimal(double x);

}  // namespace heddle
