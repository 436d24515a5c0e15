// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/single_vector.h"

// The functions that single precision computes in floats: THE definition of them in programs of floats
// (docs/numerics.md, section 9). Every rounding below is part of it. Polynomials are those of the least
// largest error of the function's own size on their interval; bounds are of
// tests/unit/ops/simd/math_single_test.cc, which tries every 1009th float.
namespace heddle::ops::HEDDLE_SIMD_NAMESPACE {

/// c[0] + c[1] x + c[2] x^2 + ..., from the last on.
template <int n>
HEDDLE_SIMD_INLINE Singles Polynomial(Singles x, const float (&c)[n]) {
  Singles sum = BroadcastSingle(c[n - 1]);
  for (int i = n - 2; i >= 0; --i) sum = Fma(sum, x, BroadcastSingle(c[i]));
  return sum;
}

// ln 2 in two parts; the first has 16 bits, so k * kSingleLn2High is exact for |k| < 2^8.
constexpr float kSingleLn2High = 0x1.62e4p-1F, kSingleLn2Low = 0x1.7f7d1cp-20F;

/// (e^r - 1 - r) / r^2 for |r| <= 0.3475.
constexpr float kExpOfSingle[] = {0x1.fffffcp-2F, 0x1.555492p-3F, 0x1.5558c0p-5F, 0x1.1239e0p-7F,
                                  0x1.6a3d70p-10F};

/// e^x, at most 1 ulp.
HEDDLE_SIMD_INLINE Singles Exp(Singles x) {
  // NaN passes both: the second operand wins.
  x = Max(BroadcastSingle(-104.0F), Min(BroadcastSingle(89.0F), x));
  const Singles whole = BroadcastSingle(0x1.8p23F);  // Numbers of this size have no fraction.
  const Singles shifted = Fma(x, BroadcastSingle(0x1.715476p+0F), whole), k = shifted - whole;
  const Singles coarse = Fnma(k, BroadcastSingle(kSingleLn2High), x);  // exact
  const Singles r = Fnma(k, BroadcastSingle(kSingleLn2Low), coarse);
  const Singles power = BroadcastSingle(1.0F) + Fma(r * r, Polynomial(r, kExpOfSingle), r);
  // Times 2^k in two steps, of which the first is exact.
  const SingleIntegers all = BitsOf(shifted) - BroadcastSingleInteger(0x4b400000);
  const SingleIntegers half = ShiftRightSigned<1>(all), bias = BroadcastSingleInteger(127);
  return (power * OfBits(ShiftLeft<23>(half + bias))) * OfBits(ShiftLeft<23>((all - half) + bias));
}

/// (ln(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) - 1 <= f < sqrt(2) - 1.
constexpr float kLogOfSingle[] = {0x1.555554p-2F, -0x1.000226p-2F, 0x1.99a01cp-3F, -0x1.54728ap-3F,
                                  0x1.22d930p-3F, -0x1.0d8246p-3F, 0x1.055eaep-3F, -0x1.38c974p-4F};

/// ln x, at most 1 ulp. log(0) = -Infinity, log(x < 0) = NaN.
HEDDLE_SIMD_INLINE Singles Log(Singles x) {
  const SingleMask denormal = Less(x, BroadcastSingle(0x1p-126F));
  const SingleIntegers bits = BitsOf(Select(denormal, x * BroadcastSingle(0x1p23F), x));
  const SingleIntegers above = bits - BroadcastSingleInteger(0x3f3504f3);  // The bits of sqrt(1/2).
  Singles k = ToSingles(ShiftRightSigned<23>(above));
  k = Select(denormal, k - BroadcastSingle(23.0F), k);
  const SingleIntegers exponent = above & BroadcastSingleInteger(static_cast<int32_t>(0xff800000));
  const Singles f = OfBits(bits - exponent) - BroadcastSingle(1.0F);  // exact
  const Singles square = f * f;
  Singles rest = Fma(f * square, Polynomial(f, kLogOfSingle), k * BroadcastSingle(kSingleLn2Low));
  rest = Fnma(BroadcastSingle(0.5F), square, rest);
  Singles result = Fma(k, BroadcastSingle(kSingleLn2High), f + rest);
  result = Select(Less(x, BroadcastSingle(__builtin_inff())), result, x);  // Infinity and NaN
  result = Select(Equal(x, BroadcastSingle(0.0F)), BroadcastSingle(-__builtin_inff()), result);
  return Select(Less(x, BroadcastSingle(0.0F)), BroadcastSingle(__builtin_nanf("")), result);
}

/// (tanh x / x - 1) / x^2 by x^2, for x <= 0.625.
constexpr float kTanhOfSingle[] = {-0x1.555554p-2F, 0x1.11107ap-3F,  -0x1.b9f18ap-5F,
                                   0x1.63a58ap-6F,  -0x1.0c60d2p-7F, 0x1.1a3334p-9F};

/// tanh x, at most 2 ulp: 1 - 2 / (e^2x + 1) where that keeps digits.
HEDDLE_SIMD_INLINE Singles Tanh(Singles x) {
  const Singles a = Min(BroadcastSingle(10.0F), Abs(x)), square = a * a, one = BroadcastSingle(1.0F);
  const Singles small = Fma(a * square, Polynomial(square, kTanhOfSingle), a);
  const Singles large = one - BroadcastSingle(2.0F) / (Exp(a + a) + one);
  return WithSign(Select(Less(a, BroadcastSingle(0.625F)), small, large), x);
}

/// 1 / (1 + e^-x) = n / (1 + e) with e = e^-|x| and n = 1 or, for x < 0, e; at most 3 ulp.
HEDDLE_SIMD_INLINE Singles Sigmoid(Singles x) {
  const Singles one = BroadcastSingle(1.0F);
  const Singles e =
      Exp(OfBits(BitsOf(x) | BroadcastSingleInteger(static_cast<int32_t>(0x80000000))));  // -|x|
  return Select(Less(x, BroadcastSingle(0.0F)), e, one) / (one + e);
}

/// erf x / x - 1 by x^2, for x < 0.9277344.
constexpr float kErfNearOfSingle[] = {0x1.06eba8p-3F, -0x1.812740p-2F,  0x1.ce2d64p-4F, -0x1.b80118p-6F,
                                      0x1.5449e8p-8F, -0x1.a6072cp-11F, 0x1.4f58d2p-14F};
/// -ln(1 - erf x) / x - 1 for 0.9277344 <= x <= 4.
constexpr float kErfFarOfSingle[] = {0x1.073142p-3F,  0x1.457df2p-1F, 0x1.af1bccp-4F,
                                     -0x1.76ead4p-6F, 0x1.a51d10p-9F, -0x1.c03998p-13F};

/// erf x, at most 2 ulp.
HEDDLE_SIMD_INLINE Singles Erf(Singles x) {
  const Singles a = Min(BroadcastSingle(4.0F), Abs(x)), square = a * a;
  const Singles near = Fma(a, Polynomial(square, kErfNearOfSingle), a);
  const Singles power = Fma(a, Polynomial(a, kErfFarOfSingle), a);
  const Singles far = BroadcastSingle(1.0F) - Exp(BroadcastSingle(0.0F) - power);
  return WithSign(Select(Less(a, BroadcastSingle(0x1.db0000p-1F)), near, far), x);
}

}  // namespace heddle::ops::HEDDLE_SIMD_NAMESPACE
