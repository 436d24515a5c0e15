// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/values/scalar.h"

namespace heddle::ops {

/// The number that would be the last of seq(from, to, increment), had rounding not taken it beyond `to`: of
/// seq(0.05, 0.95, 0.05) it is 0.9500000000000001. nullopt where the last number is there, or no number of
/// the sequence is near `to`. `increment`: nullptr where it is left out.
std::optional<double> NumberLostBySeq(double from, double to, const Scalar* increment);

}  // namespace heddle::ops
