// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/cellwise/math_exponential.h"

// x ^ y on eight lanes: THE definition of this operator (docs/numerics.md R5 and section 7). e^(y ln x) with
// the logarithm, the product and the argument of e as pairs of doubles, so that the last addition is the one
// rounding that counts: at most 0.502 ulp (tests/unit/ops/simd/power_test.cc asks for 0.52), and the result
// itself wherever it is a double. Every rounding is part of the definition. The way to the result is as short
// as the number of operations: parts that only correct are added late, and polynomials are split into even
// and odd.
namespace heddle::ops::HEDDLE_SIMD_NAMESPACE {

// Logarithms whose first parts are multiples of 2^-42: k ln 2 - ln c is exact in them for |k| <= 1074.
constexpr double kLn2Coarse = 0x1.62e42fefa3800p-1, kLn2Fine = 0x1.ef35793c76730p-45;
constexpr double kLnFiveQuartersCoarse = 0x1.c8ff7c79aap-3, kLnFiveQuartersFine = -0x1.7794f689f8434p-45;
constexpr double kLnThreeQuartersCoarse = -0x1.269621134ep-2, kLnThreeQuartersFine = 0x1.1b61f10522625p-44;

/// ln x to about 2^-70 of it, for finite x > 0. Not normalized: |low| <= 2^-17 |high|.
///
/// x = 2^k m, and c = 5/4, 1 or 3/4 brings m c close to 1: f = m c - 1 is exact, |f| <= 0.16. Then ln x =
/// k ln 2 - ln c + ln(1 + f), and ln(1 + f) = 2 atanh(q) = 2q + 2/3 q^3 + q^5 (2/5 + ...) with q = f / (2 +
/// f).
HEDDLE_SIMD_INLINE Pair LogPair(Vector x) {
  const Split split = SplitExponent(x);
  const Vector one = Broadcast(1.0), two = Broadcast(2.0);
  // The borders are where |q| is the same on both sides: sqrt(4/5) and sqrt(4/3).
  const Mask is_small = Less(split.m, Broadcast(0x1.c9f25c5bfedd9p-1));
  const Mask is_large = Greater(split.m, Broadcast(0x1.279a74590331cp+0));
  const Vector c = Select(is_small, Broadcast(1.25), Select(is_large, Broadcast(0.75), one));
  const Vector coarse = Or(KeepWhere(is_small, Broadcast(-kLnFiveQuartersCoarse)),
                           KeepWhere(is_large, Broadcast(-kLnThreeQuartersCoarse)));
  const Vector fine = Or(KeepWhere(is_small, Broadcast(-kLnFiveQuartersFine)),
                         KeepWhere(is_large, Broadcast(-kLnThreeQuartersFine)));

  const Vector f = Fms(split.m, c, one);
  const Vector denominator = f + two, denominator_low = f - (denominator - two);
  const Vector inverse = one / denominator;
  const Vector q = f * inverse;
  const Vector q_low = Fnma(q, denominator_low, Fnma(q, denominator, f)) * inverse;
  const Vector two_q = q + q;
  const Vector square = q * q, square_low = Fma(two_q, q_low, Fms(q, q, square));

  // 2/5 + 2/7 q^2 + ... for q^2 <= 0.00516: 2^-78 of the logarithm.
  const Vector fourth = square * square;
  Vector even = Broadcast(0x1.3b09509893763p-3), odd = Broadcast(0x1.160367420cf2cp-3);
  even = Fma(even, fourth, Broadcast(0x1.c71c71c0c251cp-3));
  odd = Fma(odd, fourth, Broadcast(0x1.745d2261ed979p-3));
  even = Fma(even, fourth, Broadcast(0x1.9999999999998p-2));
  odd = Fma(odd, fourth, Broadcast(0x1.249249249331dp-2));
  const Vector rest = Fma(odd, square, even);

  // 2/3 q^2, its low part with all further terms; then times q.
  const Vector two_thirds = Broadcast(0x1.5555555555555p-1),
               two_thirds_low = Broadcast(0x1.5555555555555p-55);
  const Vector s = square * two_thirds;
  const Vector s_rounding = Fma(square, two_thirds_low, Fms(square, two_thirds, s));
  const Vector s_low = Fma(rest, fourth, Fma(square_low, two_thirds, s_rounding));
  const Vector t = s * q;
  const Vector t_low = Fma(s_low, q, Fma(s, q_low, Fms(s, q, t)));

  const Pair body = FastTwoSum(two_q, t);
  const Pair sum = FastTwoSum(Fma(split.k, Broadcast(kLn2Coarse), coarse), body.high);
  const Vector constant_low = Fma(split.k, Broadcast(kLn2Fine), fine);
  return {sum.high, Fma(two, q_low, (sum.low + body.low) + constant_low) + t_low};
}

/// 2^k e^r, one rounding also below 2^-1022, for |r.high| <= 0.351 and whole |k| <= 2044.
///
/// e^r = 1 + r + r^2/2 + r^3/6 + r^4 (1/24 + ...): all but the last exact or in pairs, so that the largest
/// thing that is rounded before the end is 2^-10 of the result.
HEDDLE_SIMD_INLINE Vector ScaledExp(Vector k, Pair r) {
  const Vector x = r.high, half = Broadcast(0.5);
  const Vector square = x * x, square_low = Fms(x, x, square);
  const Vector cube = square * x, cube_low = Fma(square_low, x, Fms(square, x, cube));
  const Vector sixth = Broadcast(0x1.5555555555555p-3), sixth_low = Broadcast(0x1.5555555555555p-57);
  const Vector third_term = cube * sixth;
  const Vector third_term_low = Fma(cube, sixth_low, Fma(cube_low, sixth, Fms(cube, sixth, third_term)));

  // 1/24 + x/120 + ...: 2^-69 of e^x.
  Vector even = Broadcast(0x1.1f8dc5ce947b4p-29), odd = Broadcast(0x1.61d4e25b7cce2p-33);
  even = Fma(even, square, Broadcast(0x1.27e4cb1538a4cp-22));
  odd = Fma(odd, square, Broadcast(0x1.ae641f0bdca45p-26));
  even = Fma(even, square, Broadcast(0x1.a01a01add2118p-16));
  odd = Fma(odd, square, Broadcast(0x1.71de3a5daef43p-19));
  even = Fma(even, square, Broadcast(0x1.6c16c16c14f71p-10));
  odd = Fma(odd, square, Broadcast(0x1.a01a01a018db7p-13));
  even = Fma(even, square, Broadcast(0x1.5555555555558p-5));
  odd = Fma(odd, square, Broadcast(0x1.1111111111112p-7));
  const Vector polynomial = Fma(odd, x, even);

  const Pair one_term = FastTwoSum(Broadcast(1.0), x);
  const Pair two_terms = FastTwoSum(one_term.high, square * half);
  const Pair sum = FastTwoSum(two_terms.high, third_term);
  const Vector roundings = Fma(square_low, half, (one_term.low + two_terms.low) + sum.low);
  const Vector low = roundings + Fma(r.low, sum.high, third_term_low);
  const Vector rest = Fma(cube * x, polynomial, low);

  // A result below 2^-1022 has fewer bits. Added to a number of the right size, high + rest is rounded to
  // those at once, and taking that number away and scaling are exact.
  const Vector lost_bits = Broadcast(-1022.0) - k;  // 0: one is lost where high < 1.
  const Vector exponent = Select(Greater(lost_bits, Zero()), lost_bits, Broadcast(-1.0));
  const Vector shelf = KeepWhere(GreaterEqual(lost_bits, Zero()), PowerOfTwo(exponent));
  const Pair placed = FastTwoSum(shelf, sum.high);
  return Scale((placed.high + (placed.low + rest)) - shelf, k);
}

/// x ^ y for y that is none of the exponents of Power(); IEEE 754 special values, so x^0 = 1 and 1^y = 1 also
/// for NaN.
HEDDLE_SIMD_INLINE Vector GeneralPower(Vector x, Vector y) {
  const Vector one = Broadcast(1.0), zero = Zero(), base = Abs(x);
  Pair logarithm = LogPair(base);
  if (HasExponents()) {
    logarithm.high = FixSpecials(logarithm.high, base, 0x03530422);  // As in Log.
  } else {
    logarithm.high = Select(Less(base, Broadcast(kInfinity)), logarithm.high, base);  // Infinity and NaN
    logarithm.high = Select(Equal(base, zero), Broadcast(-kInfinity), logarithm.high);
  }
  // Infinite y as a finite one that is large enough, so that 1 ^ y needs no case of its own. NaN passes the
  // bounds: the second operand wins.
  const Vector finite = Max(Broadcast(-0x1p1000), Min(Broadcast(0x1p1000), y));
  const Vector product = finite * logarithm.high;
  const Vector product_low = Fma(finite, logarithm.low, Fms(finite, logarithm.high, product));
  // Behind these bounds the result is 0 or Infinity; here a NaN (from infinities) becomes a number.
  const Vector bounded = Max(Broadcast(-1200.0), Min(Broadcast(1200.0), product));
  const Vector bounded_low = Max(Min(product_low, one), Broadcast(-1.0));
  const Vector whole = Broadcast(0x1.8p52);  // Numbers of this size have no fraction.
  const Vector k = Fma(bounded, Broadcast(kLog2E), whole) - whole;
  const Vector r = Fnma(k, Broadcast(kLn2Coarse), bounded);  // exact
  Vector result = ScaledExp(k, FastTwoSum(r, Fnma(k, Broadcast(kLn2Fine), bounded_low)));

  const Mask is_fraction = NotEqual(y, RoundEven(y));  // infinities count as whole and even
  const Vector half = y * Broadcast(0.5);
  const Mask is_odd = Both(Equal(y, RoundEven(y)), NotEqual(half, RoundEven(half)));
  result = Or(result, And(KeepWhere(is_odd, Broadcast(-0.0)), x));
  const Mask is_outside = Both(Both(Less(x, zero), Greater(x, Broadcast(-kInfinity))), is_fraction);
  result = Select(is_outside, Broadcast(__builtin_nan("")), result);
  return Select(Either(Equal(y, zero), Equal(x, one)), one, result);
}

/// x ^ y. By definition y = 2 is x*x, y = 3 is (x*x)*x and y = -1 is 1/x.
HEDDLE_SIMD_INLINE Vector Power(Vector x, Vector y) {
  const Mask is_square = Equal(y, Broadcast(2.0));
  const Vector squared = x * x;
  if (All(is_square)) return squared;
  const Mask is_cube = Equal(y, Broadcast(3.0)), is_inverse = Equal(y, Broadcast(-1.0));
  const Vector cubed = squared * x, inverse = Broadcast(1.0) / x;
  if (All(is_cube)) return cubed;
  if (All(is_inverse)) return inverse;
  const Vector result = Select(is_cube, cubed, Select(is_inverse, inverse, GeneralPower(x, y)));
  return Select(is_square, squared, result);
}

}  // namespace heddle::ops::HEDDLE_SIMD_NAMESPACE
