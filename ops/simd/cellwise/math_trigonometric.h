// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/cellwise/math_inverse_trigonometric.h"
#include "ops/simd/cellwise/reduce_angle.h"
#include "ops/simd/vector.h"

// sin, cos and tan on eight lanes: THE definition of these functions (docs/numerics.md R5), at most 2 ulp.
// Generated code calls the kernels made of them, for the sake of the lanes that ReduceLargeAngle looks at one
// by one. Polynomials of fdlibm (Sun, 1993).
namespace heddle::ops::HEDDLE_SIMD_NAMESPACE {

/// x = quadrant * pi/2 + r (mod 2 pi), |r| <= pi/4 (a little more at the border).
struct ReducedAngle {
  Integers quadrant;  ///< Of interest: the last two bits.
  Pair r;
};

#if !defined(HEDDLE_SIMD_VECTOR_HEADER)
/// Lanes of x that do not fit, one by one.
HEDDLE_SIMD_INLINE void ReduceLargeLanes(Mask fits, Vector x, Vector* quadrant, Vector* high, Vector* low) {
  double lanes[8], quadrants[8], highs[8], lows[8];
  Store(lanes, x);
  Store(quadrants, *quadrant);
  Store(highs, *high);
  Store(lows, *low);
  const unsigned done = Bits(fits);
  for (int i = 0; i < 8; ++i)
    if ((done >> i & 1u) == 0) quadrants[i] = ReduceLargeAngle(lanes[i], &highs[i], &lows[i]);
  *quadrant = Load(quadrants);
  *high = Load(highs);
  *low = Load(lows);
}
#endif

HEDDLE_SIMD_INLINE ReducedAngle ReduceAngle(Vector x) {
  const Mask fits = Less(Abs(x), Broadcast(0x1p30));
  const Vector bounded = KeepWhere(fits, x);
  Vector n = RoundEven(bounded * Broadcast(0x1.45f306dc9c883p-1));
  const Vector coarse = Fnma(n, Broadcast(kHalfPiHigh), bounded);  // exact, by cancellation
  const Vector product = n * Broadcast(kHalfPiLow);
  const Vector product_low = Fms(n, Broadcast(kHalfPiLow), product);
  const Pair difference = TwoSum(coarse, Negate(product));
  const Vector rest = Fnma(n, Broadcast(kHalfPiLowest), difference.low - product_low);
  Pair r = TwoSum(difference.high, rest);
  if (!All(fits)) ReduceLargeLanes(fits, x, &n, &r.high, &r.low);
  return {BitsOf(n + Broadcast(0x1.8p52)), r};
}

/// sin r for |r| <= pi/4.
HEDDLE_SIMD_INLINE Pair SinKernel(Pair r) {
  const Vector z = r.high * r.high;
  Vector p = Broadcast(0x1.5d93a5acfd57cp-33);
  p = Fma(p, z, Broadcast(-0x1.ae5e68a2b9cebp-26));
  p = Fma(p, z, Broadcast(0x1.71de357b1fe7dp-19));
  p = Fma(p, z, Broadcast(-0x1.a01a019c161d5p-13));
  p = Fma(p, z, Broadcast(0x1.111111110f8a6p-7));
  p = Fma(p, z, Broadcast(-0x1.5555555555549p-3));
  const Vector tail = Fnma(z * Broadcast(0.5), r.low, r.low);
  return FastTwoSum(r.high, Fma(z * r.high, p, tail));
}

/// cos r for |r| <= pi/4.
HEDDLE_SIMD_INLINE Pair CosKernel(Pair r) {
  const Vector z = r.high * r.high;
  const Vector z_low = Fms(r.high, r.high, z);
  Vector p = Broadcast(-0x1.8fae9be8838d4p-37);
  p = Fma(p, z, Broadcast(0x1.1ee9ebdb4b1c4p-29));
  p = Fma(p, z, Broadcast(-0x1.27e4f809c52adp-22));
  p = Fma(p, z, Broadcast(0x1.a01a019cb1590p-16));
  p = Fma(p, z, Broadcast(-0x1.6c16c16c15177p-10));
  p = Fma(p, z, Broadcast(0x1.555555555554cp-5));
  const Pair head = FastTwoSum(Broadcast(1.0), Broadcast(-0.5) * z);
  const Vector tail = Fnma(r.high, r.low, Fnma(Broadcast(0.5), z_low, head.low));
  return FastTwoSum(head.high, Fma(z * z, p, tail));
}

/// All bits of a lane set where the last bit of the integer is.
HEDDLE_SIMD_INLINE Mask IsOdd(Integers quadrant) {
  return EqualIntegers(quadrant & BroadcastInteger(1), BroadcastInteger(1));
}
/// -0.0 where the second bit is set, else +0.0.
HEDDLE_SIMD_INLINE Vector SignOf(Integers quadrant) {
  return OfBits(ShiftLeft<62>(quadrant & BroadcastInteger(2)));
}

HEDDLE_SIMD_INLINE Vector Sin(Vector x) {
  const ReducedAngle angle = ReduceAngle(x);
  const Vector value = Select(IsOdd(angle.quadrant), CosKernel(angle.r).high, SinKernel(angle.r).high);
  return Select(Equal(x, Zero()), x, Xor(value, SignOf(angle.quadrant)));
}

HEDDLE_SIMD_INLINE Vector Cos(Vector x) {
  const ReducedAngle angle = ReduceAngle(x);
  const Vector value = Select(IsOdd(angle.quadrant), SinKernel(angle.r).high, CosKernel(angle.r).high);
  return Xor(value, SignOf(angle.quadrant + BroadcastInteger(1)));
}

HEDDLE_SIMD_INLINE Vector Tan(Vector x) {
  const ReducedAngle angle = ReduceAngle(x);
  const Mask odd = IsOdd(angle.quadrant);
  const Pair sine = SinKernel(angle.r);
  const Pair cosine = CosKernel(angle.r);
  const Pair numerator = {Select(odd, cosine.high, sine.high), Select(odd, cosine.low, sine.low)};
  const Pair denominator = {Select(odd, sine.high, cosine.high), Select(odd, sine.low, cosine.low)};
  const Vector q = numerator.high / denominator.high;
  const Vector rest = Fnma(q, denominator.high, numerator.high) + Fnma(q, denominator.low, numerator.low);
  const Vector value = q + rest / denominator.high;
  return Select(Equal(x, Zero()), x, Xor(value, KeepWhere(odd, Broadcast(-0.0))));
}

}  // namespace heddle::ops::HEDDLE_SIMD_NAMESPACE
