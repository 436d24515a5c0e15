// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/vector.h"

// exp, log and the hyperbolic functions on eight lanes: THE definition of these functions
// (docs/numerics.md R5). Every rounding below is part of it: do not regroup a sum, do not fuse a product, do
// not approximate a division. Error bounds are of the tests in tests/unit/ops/simd/math_test.cc.
namespace heddle::ops::HEDDLE_SIMD_NAMESPACE {

/// high + low, |low| <= ulp(high) / 2.
struct Pair {
  Vector high, low;
};

/// a + b exactly (Knuth).
HEDDLE_SIMD_INLINE Pair TwoSum(Vector a, Vector b) {
  const Vector sum = a + b;
  const Vector b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}
/// a + b exactly where |a| >= |b| or a is zero (Dekker).
HEDDLE_SIMD_INLINE Pair FastTwoSum(Vector a, Vector b) {
  const Vector sum = a + b;
  return {sum, b - (sum - a)};
}

// ln 2 in two parts; the first has 32 bits, so k * kLn2High is exact for |k| < 2^20.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kInfinity = __builtin_inf();

/// 2^k for whole -1022 <= k <= 1023.
HEDDLE_SIMD_INLINE Vector PowerOfTwo(Vector k) {
  // k + 1.5*2^52 holds k in its low bits (two's complement).
  return OfBits(ShiftLeft<52>(BitsOf(k + Broadcast(0x1.8p52)) + BroadcastInteger(1023)));
}
/// x * 2^k for whole |k| <= 2044: one rounding, also for a result below 2^-1022, since the first product is
/// exact there.
HEDDLE_SIMD_INLINE Vector Scale(Vector x, Vector k) {
  if (HasExponents()) return ScaleExponent(x, k);
  const Integers all = BitsOf(k + Broadcast(0x1.8p52)), half = ShiftRight<1>(all);  // As in PowerOfTwo.
  const Integers bias = BroadcastInteger(1023);
  return (x * OfBits(ShiftLeft<52>(half + bias))) * OfBits(ShiftLeft<52>((all - half) + bias));
}

/// x = k ln 2 + (high + low), |high| <= 0.35.
struct ExpParts {
  Vector k;
  Pair r;
};

/// |x| <= 1500. k = round(x / ln 2).
HEDDLE_SIMD_INLINE ExpParts ReduceExp(Vector x) {
  const Vector whole = Broadcast(0x1.8p52);  // Numbers of this size have no fraction.
  const Vector k = Fma(x, Broadcast(kLog2E), whole) - whole;
  const Vector coarse = Fnma(k, Broadcast(kLn2High), x);  // exact
  const Vector fine = Fnma(k, Broadcast(kLn2Low), coarse);
  return {k, {fine, Fnma(k, Broadcast(kLn2Low), coarse - fine)}};
}

/// e^r - 1 - r.high. The polynomial for (e^r - 1 - r) / r^2 is that of the least largest error of e^r, 2^-60
/// of it.
HEDDLE_SIMD_INLINE Vector ExpRest(Pair r) {
  Vector q = Broadcast(0x1.1e67122a227e2p-29);
  q = Fma(q, r.high, Broadcast(0x1.af686e07d573cp-26));
  q = Fma(q, r.high, Broadcast(0x1.27e58cfd304e3p-22));
  q = Fma(q, r.high, Broadcast(0x1.71ddf268cf008p-19));
  q = Fma(q, r.high, Broadcast(0x1.a01a01527167ap-16));
  q = Fma(q, r.high, Broadcast(0x1.a01a01b26bf71p-13));
  q = Fma(q, r.high, Broadcast(0x1.6c16c16c2701ap-10));
  q = Fma(q, r.high, Broadcast(0x1.111111110efbcp-7));
  q = Fma(q, r.high, Broadcast(0x1.5555555555530p-5));
  q = Fma(q, r.high, Broadcast(0x1.555555555555ap-3));
  q = Fma(q, r.high, Broadcast(0.5));
  return Fma(r.high * r.high, q, r.low);
}

/// 2^k e^r.
HEDDLE_SIMD_INLINE Vector ExpOf(ExpParts parts) {
  return Scale(Broadcast(1.0) + (parts.r.high + ExpRest(parts.r)), parts.k);
}

/// e^x, at most 1 ulp.
HEDDLE_SIMD_INLINE Vector Exp(Vector x) {
  // NaN passes both: the second operand wins.
  return ExpOf(ReduceExp(Max(Broadcast(-746.0), Min(Broadcast(710.0), x))));
}

/// x = 2^k * m with sqrt(1/2) <= m < sqrt(2), for finite x > 0 (denormals too).
struct Split {
  Vector k, m;
};
HEDDLE_SIMD_INLINE Split SplitExponent(Vector x) {
  if (HasExponents()) {
    const Vector k = ExponentOf(x), m = MantissaOf(x);
    const Mask is_above = Less(Broadcast(0x1.6a09e667f3bccp+0), m);  // m >= sqrt(2)
    return {Select(is_above, k + Broadcast(1.0), k), Select(is_above, m * Broadcast(0.5), m)};
  }
  const Mask denormal = Less(x, Broadcast(0x1p-1022));
  const Integers bits = BitsOf(Select(denormal, x * Broadcast(0x1p54), x));
  const Integers above = bits - BroadcastInteger(0x3fe6a09e667f3bcd);  // the bits of sqrt(1/2)
  // k + 1 + 1024 as an unsigned number, then as a double by placing it in the mantissa of 2^52.
  const Integers biased = ShiftRight<52>(above + BroadcastInteger(int64_t{1024} << 52));
  const Vector k = OfBits(biased | BroadcastInteger(0x4330000000000000)) - Broadcast(0x1p52 + 1024.0);
  const Vector m = OfBits(bits - (above & BroadcastInteger(static_cast<int64_t>(0xfff0000000000000))));
  return {Select(denormal, k - Broadcast(54.0), k), m};
}

/// ln x, at most 1 ulp. log(0) = -Infinity, log(x < 0) = NaN. Method and polynomial of fdlibm's e_log.c (Sun,
/// 1993), with fma.
HEDDLE_SIMD_INLINE Vector Log(Vector x) {
  const Split split = SplitExponent(x);
  const Vector f = split.m - Broadcast(1.0);  // exact
  const Vector s = f / (f + Broadcast(2.0));
  const Vector z = s * s;
  Vector r = Broadcast(0x1.2f112df3e5244p-3);
  r = Fma(r, z, Broadcast(0x1.39a09d078c69fp-3));
  r = Fma(r, z, Broadcast(0x1.7466496cb03dep-3));
  r = Fma(r, z, Broadcast(0x1.c71c51d8e78afp-3));
  r = Fma(r, z, Broadcast(0x1.2492494229359p-2));
  r = Fma(r, z, Broadcast(0x1.999999997fa04p-2));
  r = Fma(r, z, Broadcast(0x1.5555555555593p-1));
  const Vector half_square = (f * f) * Broadcast(0.5);
  const Vector small = Fma(s, Fma(r, z, half_square), split.k * Broadcast(kLn2Low));
  Vector result = Fms(split.k, Broadcast(kLn2High), (half_square - small) - f);
  // NaN: itself; zero: -Infinity; negative: NaN; Infinity: itself.
  if (HasExponents()) return FixSpecials(result, x, 0x03530422);
  result = Select(Less(x, Broadcast(kInfinity)), result, x);  // Infinity and NaN
  result = Select(Equal(x, Zero()), Broadcast(-kInfinity), result);
  return Select(Less(x, Zero()), Broadcast(__builtin_nan("")), result);
}

/// e^a - 1 as a pair, for 0 <= a <= 50.
HEDDLE_SIMD_INLINE Pair ExpMinusOne(Vector a) {
  const ExpParts parts = ReduceExp(a);
  const Pair e = FastTwoSum(parts.r.high, ExpRest(parts.r));
  const Vector power = PowerOfTwo(parts.k);
  const Pair sum = TwoSum(power - Broadcast(1.0), power * e.high);
  return {sum.high, Fma(power, e.low, sum.low)};
}

/// tanh x = E / (E + 2) with E = e^2|x| - 1, at most 1 ulp.
HEDDLE_SIMD_INLINE Vector Tanh(Vector x) {
  const Vector a = Min(Broadcast(22.0), Abs(x));
  const Pair e = ExpMinusOne(a + a);
  const Pair denominator = TwoSum(e.high, Broadcast(2.0));
  const Vector q = e.high / denominator.high;
  const Vector rest = Fnma(q, denominator.high, e.high) + Fnma(q, denominator.low + e.low, e.low);
  return CopySign(q + rest / denominator.high, x);
}

/// 1 / (1 + e^-x) = n / (1 + e) with e = e^-|x| and n = 1 or, for x < 0, e; at most 1 ulp.
HEDDLE_SIMD_INLINE Vector Sigmoid(Vector x) {
  const ExpParts parts = ReduceExp(Max(Broadcast(-746.0), Or(x, Broadcast(-0.0))));  // NaN passes.
  const Pair small = FastTwoSum(parts.r.high, ExpRest(parts.r)), sum = FastTwoSum(Broadcast(1.0), small.high);
  const Vector e = Scale(sum.high, parts.k), e_low = Scale(sum.low + small.low, parts.k);
  const Pair denominator = FastTwoSum(Broadcast(1.0), e);
  const Mask is_negative = Less(x, Zero());
  const Vector numerator = Select(is_negative, e, Broadcast(1.0));
  const Vector inverse = Broadcast(1.0) / denominator.high;
  const Vector q = numerator * inverse;
  const Vector rest =
      Fnma(q, denominator.high, numerator) + Fnma(q, denominator.low + e_low, KeepWhere(is_negative, e_low));
  return Fma(rest, inverse, q);
}

/// e^a / 2 for 22 <= a; Infinity only where the result is.
HEDDLE_SIMD_INLINE Vector HalfExp(Vector a) {
  const ExpParts parts = ReduceExp(Min(Broadcast(712.0), a));
  return ExpOf({parts.k - Broadcast(1.0), parts.r});
}

/// sinh x = (E + E / (E + 1)) / 2 with E = e^|x| - 1, at most 2 ulp.
HEDDLE_SIMD_INLINE Vector Sinh(Vector x) {
  const Vector a = Abs(x);
  const Vector bounded = Min(Broadcast(22.0), a);
  const Pair e = ExpMinusOne(bounded);
  const Vector small = (e.high + (e.low + e.high / (e.high + Broadcast(1.0)))) * Broadcast(0.5);
  return CopySign(Select(Greater(a, Broadcast(22.0)), HalfExp(a), small), x);
}

/// cosh x = e^|x| / 2 + 1 / (2 e^|x|), at most 2 ulp.
HEDDLE_SIMD_INLINE Vector Cosh(Vector x) {
  const Vector a = Abs(x);
  const Vector e = ExpOf(ReduceExp(Min(Broadcast(22.0), a)));
  const Vector small = Broadcast(0.5) * e + Broadcast(0.5) / e;
  return Select(Greater(a, Broadcast(22.0)), HalfExp(a), small);
}

}  // namespace heddle::ops::HEDDLE_SIMD_NAMESPACE
