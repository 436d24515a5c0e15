// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/cellwise/elementwise.h"
#include "ops/simd/cellwise/math_error_function.h"
#include "ops/simd/cellwise/math_exponential.h"
#include "ops/simd/cellwise/math_inverse_trigonometric.h"
#include "ops/simd/cellwise/math_power.h"
#include "ops/simd/cellwise/math_single.h"
#include "ops/simd/vector.h"
#if !defined(HEDDLE_SIMD_VECTOR_HEADER)
#include "ops/simd/cellwise/integer_operators.h"
#endif
#if !defined(HEDDLE_SIMD_VECTOR_HEADER) || defined(HEDDLE_SIMD_HAS_TRIGONOMETRY)
#include "ops/simd/cellwise/math_trigonometric.h"
#endif

// The cell-wise operators on eight lanes, one expression each: THE definition of every one (docs/numerics.md,
// section 7). Hand-written kernels (elementwise.inc) and generated code (compiler/codegen) are made of these
// lines.
namespace heddle::ops::HEDDLE_SIMD_NAMESPACE {

// Operators as types, so that a loop is written once. kHeavy ones are limited by arithmetic: their loop
// exists once.
#define HEDDLE_BINARY(Name, heavy, expression)                                              \
  struct Name##Operator {                                                                   \
    static constexpr bool kHeavy = heavy;                                                   \
    HEDDLE_SIMD_INLINE Vector Apply([[maybe_unused]] Vector a, [[maybe_unused]] Vector b) { \
      return expression;                                                                    \
    }                                                                                       \
  };
#define HEDDLE_UNARY(Name, heavy, expression)                                         \
  struct Name##Operator {                                                             \
    static constexpr bool kHeavy = heavy;                                             \
    HEDDLE_SIMD_INLINE Vector Apply([[maybe_unused]] Vector a) { return expression; } \
  };

HEDDLE_SIMD_INLINE Mask IsTrue(Vector a) { return NotEqual(a, Zero()); }  // NaN counts as true

// a / b truncated as language reference 2.2 says, sign(q) * floor(|q| + 2^-53), as an integer: never -0.0.
HEDDLE_SIMD_INLINE Vector TruncatedQuotient(Vector a, Vector b) {
  const Vector q = a / b;
  return CopySign(Floor(Abs(q) + Broadcast(0x1p-53)), q) + Zero();
}

// Java's Math.min and Math.max: NaN if any is NaN, -0.0 < 0.0. Equal numbers differ in nothing but the sign
// of zero. Min and Max give the second operand where the order decides nothing.
HEDDLE_SIMD_INLINE Vector JavaMinimum(Vector a, Vector b) {
  return Select(Unordered(a, b), a + b, Or(Min(a, b), Min(b, a)));
}
HEDDLE_SIMD_INLINE Vector JavaMaximum(Vector a, Vector b) {
  return Select(Unordered(a, b), a + b, And(Max(a, b), Max(b, a)));
}

HEDDLE_BINARY(Add, false, a + b)
HEDDLE_BINARY(Subtract, false, a - b)
HEDDLE_BINARY(Multiply, false, a* b)
HEDDLE_BINARY(Divide, false, a / b)
HEDDLE_BINARY(Power, true, HEDDLE_SIMD_NAMESPACE::Power(a, b))
HEDDLE_BINARY(Modulus, false, a - TruncatedQuotient(a, b) * b)
HEDDLE_BINARY(IntegerDivide, false, TruncatedQuotient(a, b))
HEDDLE_BINARY(Less, false, OneWhere(HEDDLE_SIMD_NAMESPACE::Less(a, b)))
HEDDLE_BINARY(LessEqual, false, OneWhere(HEDDLE_SIMD_NAMESPACE::LessEqual(a, b)))
HEDDLE_BINARY(Greater, false, OneWhere(HEDDLE_SIMD_NAMESPACE::Greater(a, b)))
HEDDLE_BINARY(GreaterEqual, false, OneWhere(HEDDLE_SIMD_NAMESPACE::GreaterEqual(a, b)))
HEDDLE_BINARY(Equal, false, OneWhere(HEDDLE_SIMD_NAMESPACE::Equal(a, b)))
HEDDLE_BINARY(NotEqual, false, OneWhere(HEDDLE_SIMD_NAMESPACE::NotEqual(a, b)))
HEDDLE_BINARY(LogicalAnd, false, OneWhere(Both(IsTrue(a), IsTrue(b))))
HEDDLE_BINARY(LogicalOr, false, OneWhere(Either(IsTrue(a), IsTrue(b))))
HEDDLE_BINARY(ExclusiveOr, false, OneWhere(Differ(IsTrue(a), IsTrue(b))))
HEDDLE_BINARY(Minimum, false, JavaMinimum(a, b))
HEDDLE_BINARY(Maximum, false, JavaMaximum(a, b))
HEDDLE_BINARY(BitAnd, true, IntegerAnd(a, b))
HEDDLE_BINARY(BitOr, true, IntegerOr(a, b))
HEDDLE_BINARY(BitXor, true, IntegerExclusiveOr(a, b))
HEDDLE_BINARY(BitShiftLeft, true, IntegerShiftLeft(a, b))
HEDDLE_BINARY(BitShiftRight, true, IntegerShiftRight(a, b))
HEDDLE_BINARY(LogBase, true, Log(a) / Log(b))

HEDDLE_UNARY(Not, false, OneWhere(Equal(a, Zero())))
HEDDLE_UNARY(SquareRoot, false, Sqrt(a))
HEDDLE_UNARY(Exponential, true, Exp(a))
HEDDLE_UNARY(Logarithm, true, Log(a))
HEDDLE_UNARY(Absolute, false, Abs(a))
// The nearest whole number, of two the larger one. Not Floor(a + 0.5): that sum is rounded itself, to 1 where
// a is the number before 0.5, and to an even number where a is whole and odd, from 2^52 on.
HEDDLE_UNARY(Round, false,
             Floor(a) + OneWhere(HEDDLE_SIMD_NAMESPACE::GreaterEqual(a - Floor(a), Broadcast(0.5))))
HEDDLE_UNARY(RoundDown, false, Floor(a))
HEDDLE_UNARY(RoundUp, false, Ceil(a))
HEDDLE_UNARY(Sign, false,
             Select(Greater(a, Zero()), Broadcast(1.0), Select(Less(a, Zero()), Broadcast(-1.0), a)))
HEDDLE_UNARY(Sine, true, Sin(a))
HEDDLE_UNARY(Cosine, true, Cos(a))
HEDDLE_UNARY(Tangent, true, Tan(a))
HEDDLE_UNARY(ArcSine, true, Asin(a))
HEDDLE_UNARY(ArcCosine, true, Acos(a))
HEDDLE_UNARY(ArcTangent, true, Atan(a))
HEDDLE_UNARY(HyperbolicSine, true, Sinh(a))
HEDDLE_UNARY(HyperbolicCosine, true, Cosh(a))
HEDDLE_UNARY(HyperbolicTangent, true, Tanh(a))
HEDDLE_UNARY(Sigmoid, true, HEDDLE_SIMD_NAMESPACE::Sigmoid(a))
HEDDLE_UNARY(ErrorFunction, true, Erf(a))
HEDDLE_UNARY(IsNaN, false, OneWhere(Unordered(a, a)))
HEDDLE_UNARY(IsInfinite, false, OneWhere(Equal(Abs(a), Broadcast(kInfinity))))
HEDDLE_UNARY(RoundToSingle, false,
             ToSingle(a))  // No operator of the language: what storing a cell as a float does to it.
// Functions of floats, of cells that are floats (InSingles of ops/base/cell_codes.h).
HEDDLE_UNARY(SingleExponential, true, Widen(Exp(Narrow(a))))
HEDDLE_UNARY(SingleLogarithm, true, Widen(Log(Narrow(a))))
HEDDLE_UNARY(SingleHyperbolicTangent, true, Widen(Tanh(Narrow(a))))
HEDDLE_UNARY(SingleSigmoid, true, Widen(HEDDLE_SIMD_NAMESPACE::Sigmoid(Narrow(a))))
HEDDLE_UNARY(SingleErrorFunction, true, Widen(Erf(Narrow(a))))
#undef HEDDLE_BINARY
#undef HEDDLE_UNARY

// True for operators that arithmetic limits, not memory.
#define HEDDLE_CASE(Name) \
  case UnaryCode::k##Name: return Name##Operator::kHeavy;
constexpr bool IsHeavy(UnaryCode code) {
  switch (code) { HEDDLE_UNARY_KERNELS(HEDDLE_CASE) }
  return false;
}
#undef HEDDLE_CASE
#define HEDDLE_CASE(Name) \
  case BinaryCode::k##Name: return Name##Operator::kHeavy;
constexpr bool IsHeavy(BinaryCode code) {
  switch (code) { HEDDLE_BINARY_KERNELS(HEDDLE_CASE) }
  return false;
}
#undef HEDDLE_CASE

}  // namespace heddle::ops::HEDDLE_SIMD_NAMESPACE
