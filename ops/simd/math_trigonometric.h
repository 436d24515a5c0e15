// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/math_exponential.h"
#include "ops/simd/reduce_angle.h"
#include "ops/simd/vector.h"

// sin, cos, tan and their inverses on eight lanes: THE definition of these functions (docs/numerics.md R5), at most 2 ulp.
// Polynomials of fdlibm (Sun, 1993).
namespace heddle::ops::HEDDLE_SIMD_NAMESPACE {

constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0;  // pi/2 in three parts
constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;
constexpr double kHalfPiLowest = -0x1.f1976b7ed8fbcp-110;

/// x = quadrant * pi/2 + r (mod 2 pi), |r| <= pi/4 (a little more at the border).
struct ReducedAngle {
  Integers quadrant;  ///< Of interest: the last two bits.
  Pair r;
};

HEDDLE_SIMD_INLINE ReducedAngle ReduceAngle(Vector x) {
  const Mask fits = Less(Abs(x), Broadcast(0x1p30));
  const Vector bounded = KeepWhere(fits, x);
  const Vector n = RoundEven(bounded * Broadcast(0x1.45f306dc9c883p-1));
  const Vector coarse = Fnma(n, Broadcast(kHalfPiHigh), bounded);  // exact, by cancellation
  const Vector product = n * Broadcast(kHalfPiLow);
  const Vector product_low = Fms(n, Broadcast(kHalfPiLow), product);
  const Pair difference = TwoSum(coarse, Negate(product));
  const Vector rest = Fnma(n, Broadcast(kHalfPiLowest), difference.low - product_low);
  ReducedAngle angle = {BitsOf(n + Broadcast(0x1.8p52)), TwoSum(difference.high, rest)};
  if (Bits(fits) != 0xff) {
    double lanes[8], high[8], low[8], quadrant[8];
    Store(lanes, x);
    Store(high, angle.r.high);
    Store(low, angle.r.low);
    Store(quadrant, n);
    const unsigned done = Bits(fits);
    for (int i = 0; i < 8; ++i)
      if ((done >> i & 1u) == 0) quadrant[i] = ReduceLargeAngle(lanes[i], &high[i], &low[i]);
    angle = {BitsOf(Load(quadrant) + Broadcast(0x1.8p52)), {Load(high), Load(low)}};
  }
  return angle;
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
HEDDLE_SIMD_INLINE Vector SignOf(Integers quadrant) { return OfBits(ShiftLeft<62>(quadrant & BroadcastInteger(2))); }

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

/// (asin(sqrt z) - sqrt z) / sqrt z for 0 <= z <= 1/4.
HEDDLE_SIMD_INLINE Vector AsinKernel(Vector z) {
  Vector p = Broadcast(0x1.23de10dfdf709p-15);
  p = Fma(p, z, Broadcast(0x1.9efe07501b288p-11));
  p = Fma(p, z, Broadcast(-0x1.48228b5688f3bp-5));
  p = Fma(p, z, Broadcast(0x1.9c1550e884455p-3));
  p = Fma(p, z, Broadcast(-0x1.4d61203eb6f7dp-2));
  p = Fma(p, z, Broadcast(0x1.5555555555555p-3));
  Vector q = Broadcast(0x1.3b8c5b12e9282p-4);
  q = Fma(q, z, Broadcast(-0x1.6066c1b8d0159p-1));
  q = Fma(q, z, Broadcast(0x1.02ae59c598ac8p+1));
  q = Fma(q, z, Broadcast(-0x1.33a271c8a2d4bp+1));
  q = Fma(q, z, Broadcast(1.0));
  return (p * z) / q;
}

/// asin a for 1/2 <= a <= 1 is pi/2 - 2 asin(root) with root = sqrt((1 - a)/2); this is 2 asin(root) as a pair.
HEDDLE_SIMD_INLINE Pair TwiceAsinOfRoot(Vector a) {
  const Vector z = (Broadcast(1.0) - a) * Broadcast(0.5);
  const Vector root = Sqrt(z);
  // root_low = sqrt(z) - root.
  const Vector root_low = Select(Equal(root, Zero()), Zero(), Fnma(root, root, z) / (root + root));
  const Vector rest = Fma(root, AsinKernel(z), root_low);
  return {root + root, rest + rest};
}

/// asin x; NaN for |x| > 1.
HEDDLE_SIMD_INLINE Vector Asin(Vector x) {
  const Vector a = Abs(x);
  const Vector near = Fma(a, AsinKernel(a * a), a);
  const Pair twice = TwiceAsinOfRoot(a);
  const Pair difference = TwoSum(Broadcast(kHalfPiHigh), Negate(twice.high));
  const Vector far = difference.high + (difference.low - (twice.low - Broadcast(kHalfPiLow)));
  return CopySign(Select(Less(a, Broadcast(0.5)), near, far), x);
}

/// acos x; NaN for |x| > 1.
HEDDLE_SIMD_INLINE Vector Acos(Vector x) {
  const Vector a = Abs(x);
  const Pair middle = TwoSum(Broadcast(kHalfPiHigh), Negate(x));
  const Vector near = middle.high + (middle.low + Fnma(x, AsinKernel(x * x), Broadcast(kHalfPiLow)));
  const Pair twice = TwiceAsinOfRoot(a);
  const Vector right = twice.high + twice.low;
  const Pair rest = TwoSum(Broadcast(2.0 * kHalfPiHigh), Negate(twice.high));
  const Vector left = rest.high + (rest.low - (twice.low - Broadcast(2.0 * kHalfPiLow)));
  return Select(Less(a, Broadcast(0.5)), near, Select(Less(x, Zero()), left, right));
}

/// atan x = atan(c) + atan((x - c) / (1 + c x)), c the nearest of 0, 1/2, 1, 3/2 and infinity.
HEDDLE_SIMD_INLINE Vector Atan(Vector x) {
  const Vector a = Abs(x), one = Broadcast(1.0);
  Vector numerator = a, denominator = one, high = Zero(), low = Zero();
  auto choose = [&](double from, Vector n, Vector d, double h, double l) __attribute__((always_inline)) {
    const Mask mask = GreaterEqual(a, Broadcast(from));
    numerator = Select(mask, n, numerator);
    denominator = Select(mask, d, denominator);
    high = Select(mask, Broadcast(h), high);
    low = Select(mask, Broadcast(l), low);
  };
  choose(0.4375, (a + a) - one, a + Broadcast(2.0), 0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56);
  choose(0.6875, a - one, a + one, 0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55);
  choose(1.1875, a - Broadcast(1.5), Fma(a, Broadcast(1.5), one), 0x1.f730bd281f69bp-1, 0x1.007887af0cbbdp-56);
  choose(2.4375, Broadcast(-1.0), a, kHalfPiHigh, kHalfPiLow);
  const Vector t = numerator / denominator;
  const Vector z = t * t;
  Vector p = Broadcast(0x1.0ad3ae322da11p-6);
  p = Fma(p, z, Broadcast(-0x1.2b4442c6a6c2fp-5));
  p = Fma(p, z, Broadcast(0x1.97b4b24760debp-5));
  p = Fma(p, z, Broadcast(-0x1.dde2d52defd9ap-5));
  p = Fma(p, z, Broadcast(0x1.10d66a0d03d51p-4));
  p = Fma(p, z, Broadcast(-0x1.3b0f2af749a6dp-4));
  p = Fma(p, z, Broadcast(0x1.745cdc54c206ep-4));
  p = Fma(p, z, Broadcast(-0x1.c71c6fe231671p-4));
  p = Fma(p, z, Broadcast(0x1.24924920083ffp-3));
  p = Fma(p, z, Broadcast(-0x1.999999998ebc4p-3));
  p = Fma(p, z, Broadcast(0x1.555555555550dp-2));
  const Vector value = high - (Fms(t * z, p, low) - t);
  return CopySign(value, x);
}

}  // namespace heddle::ops::HEDDLE_SIMD_NAMESPACE
