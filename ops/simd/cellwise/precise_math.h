// SPDX-License-Identifier: Apache-2.0
#pragma once

// log, sin, cos and exp computed in pairs of doubles and rounded once: the error is below 0.5001 units in the
// last place, so the results are those of a correctly rounded library except in about one case in ten
// thousand. They are plain additions, multiplications and fma, the same bits on every machine. Used where the
// values of a random stream must not depend on a libm. A table look-up and a short polynomial decide most
// cases (Ziv, Fast evaluation of elementary mathematical functions with correctly rounded last bit, ACM TOMS
// 17, 1991): 10-20 ns. Valid for the ranges of random streams.
namespace heddle::ops {

double PreciseLog(double x);                                     ///< x > 0, normal; 0 gives -Inf.
void PreciseSineCosine(double x, double* sine, double* cosine);  ///< 0 <= x < 7.
double PreciseExp(double x);                                     ///< |x| < 700.

}  // namespace heddle::ops
