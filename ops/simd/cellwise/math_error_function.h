// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/cellwise/math_exponential.h"
#include "ops/simd/vector.h"

// The error function on eight lanes: THE definition of it (docs/numerics.md R5). Rational functions of
// fdlibm's s_erf.c (Sun, 1993).
namespace heddle::ops::HEDDLE_SIMD_NAMESPACE {

constexpr double kErfNearAbove[] = {0x1.06eba8214db68p-3, -0x1.4cd7d691cb913p-2, -0x1.d2a51dbd7194fp-6,
                                    -0x1.7a291236668e4p-8, -0x1.8ead6120016acp-16};
constexpr double kErfNearBelow[] = {1.0,
                                    0x1.97779cddadc09p-2,
                                    0x1.0a54c5536cebap-4,
                                    0x1.4d022c4d36b0fp-8,
                                    0x1.15dc9221c1a10p-13,
                                    -0x1.09c4342a26120p-18};
constexpr double kErfMiddleAbove[] = {-0x1.359b8bef77538p-9, 0x1.a8d00ad92b34dp-2,  -0x1.7d240fbb8c3f1p-2,
                                      0x1.45fca805120e4p-2,  -0x1.c63983d3e28ecp-4, 0x1.22a36599795ebp-5,
                                      -0x1.1bf380a96073fp-9};
constexpr double kErfMiddleBelow[] = {1.0,
                                      0x1.b3e6618eee323p-4,
                                      0x1.14af092eb6f33p-1,
                                      0x1.2635cd99fe9a7p-4,
                                      0x1.02660e763351fp-3,
                                      0x1.bedc26b51dd1cp-7,
                                      0x1.88b545735151dp-7};
constexpr double kErfFarAbove[] = {-0x1.43412600d6435p-7, -0x1.63416e4ba7360p-1, -0x1.51e0441b0e726p+3,
                                   -0x1.f300ae4cba38dp+5, -0x1.44cb184282266p+7, -0x1.7135cebccabb2p+7,
                                   -0x1.4526557e4d2f2p+6, -0x1.3a0efc69ac25cp+3};
constexpr double kErfFarBelow[] = {1.0,
                                   0x1.3a6b9bd707687p+4,
                                   0x1.1350c526ae721p+7,
                                   0x1.b290dd58a1a71p+8,
                                   0x1.42b1921ec2868p+9,
                                   0x1.ad02157700314p+8,
                                   0x1.b28a3ee48ae2cp+6,
                                   0x1.a47ef8e484a93p+2,
                                   -0x1.eeff2ee749a62p-5};

/// c[0] + c[1] z + c[2] z^2 + ..., from the last on.
template <int n>
HEDDLE_SIMD_INLINE Vector Polynomial(Vector z, const double (&c)[n]) {
  Vector sum = Broadcast(c[n - 1]);
  for (int i = n - 2; i >= 0; --i) sum = Fma(sum, z, Broadcast(c[i]));
  return sum;
}

/// erf x = 2/sqrt(pi) times the integral of e^-t^2 from 0 to x, at most 1 ulp.
HEDDLE_SIMD_INLINE Vector Erf(Vector x) {
  const Vector a = Abs(x), one = Broadcast(1.0);
  // |x| < 0.84375: x + x R(x^2).
  const Vector square = x * x;
  Vector above = Polynomial(square, kErfNearAbove), below = Polynomial(square, kErfNearBelow);
  // |x| < 1.25: 0.845... + R(|x| - 1).
  const Mask is_near = Less(a, Broadcast(0.84375)), is_middle = Less(a, Broadcast(1.25));
  const Vector t = a - one;
  above = Select(is_near, above, Polynomial(t, kErfMiddleAbove));
  below = Select(is_near, below, Polynomial(t, kErfMiddleBelow));
  // Else 1 - e^(-x^2 - 0.5625 + R(1/x^2)) / |x|; from 6 on it is 1. NaN passes Min, whose second operand
  // wins.
  const Vector b = Min(Broadcast(6.0), a), s = one / (b * b);
  above = Select(is_middle, above, Polynomial(s, kErfFarAbove));
  below = Select(is_middle, below, Polynomial(s, kErfFarBelow));
  const Vector ratio = above / below;
  const Vector far = one - Exp(Fnma(b, b, Broadcast(-0.5625) + ratio)) / b;
  const Vector middle = Broadcast(0x1.b0ac160000000p-1) + ratio;
  return Select(is_near, Fma(x, ratio, x), CopySign(Select(is_middle, middle, far), x));
}

}  // namespace heddle::ops::HEDDLE_SIMD_NAMESPACE
