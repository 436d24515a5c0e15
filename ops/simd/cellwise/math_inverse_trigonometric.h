// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/cellwise/math_exponential.h"
#include "ops/simd/vector.h"

// asin, acos and atan on eight lanes: THE definition of these functions (docs/numerics.md R5), at most 2 ulp.
// Polynomials of fdlibm (Sun, 1993).
namespace heddle::ops::HEDDLE_SIMD_NAMESPACE {

constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0;  // pi/2 in three parts
constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;
constexpr double kHalfPiLowest = -0x1.f1976b7ed8fbcp-110;

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

/// asin a for 1/2 <= a <= 1 is pi/2 - 2 asin(root) with root = sqrt((1 - a)/2); this is 2 asin(root) as a
/// pair.
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
  choose(1.1875, a - Broadcast(1.5), Fma(a, Broadcast(1.5), one), 0x1.f730bd281f69bp-1,
         0x1.007887af0cbbdp-56);
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
