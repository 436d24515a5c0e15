// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace heddle::ops {

/// Slow path of sin, cos and tan for |x| >= 2^30 (Payne and Hanek, "Radian Reduction for Trigonometric
/// Arguments", 1983): x = quadrant * pi/2 + high + low (mod 2*pi), |high| <= pi/4, relative error of high +
/// low below 2^-60. Returns the quadrant, 0-3. NaN and infinities give NaN in `high`. Compiled once, so every
/// target gives the same bits.
int ReduceLargeAngle(double x, double* high, double* low);

}  // namespace heddle::ops
