// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

// The cell-wise operators that have kernels of their own, by number. No standard headers: see
// ops/simd/vector.h.
namespace heddle::ops {

/// Binary operators. The meaning of each is at its line in ops/simd/cellwise/cell_operators.h.
// clang-format off
#define HEDDLE_BINARY_KERNELS(X)                                                                                   \
  X(Add) X(Subtract) X(Multiply) X(Divide) X(Power) X(Modulus) X(IntegerDivide)                                    \
  X(Less) X(LessEqual) X(Greater) X(GreaterEqual) X(Equal) X(NotEqual) X(LogicalAnd) X(LogicalOr) X(ExclusiveOr)   \
  X(Minimum) X(Maximum) X(BitAnd) X(BitOr) X(BitXor) X(BitShiftLeft) X(BitShiftRight) X(LogBase)
#define HEDDLE_UNARY_KERNELS(X)                                                                                    \
  X(Not) X(SquareRoot) X(Exponential) X(Logarithm) X(Absolute) X(Round) X(RoundDown) X(RoundUp) X(Sign)            \
  X(Sine) X(Cosine) X(Tangent) X(ArcSine) X(ArcCosine) X(ArcTangent) X(HyperbolicSine) X(HyperbolicCosine)         \
  X(HyperbolicTangent) X(Sigmoid) X(ErrorFunction) X(IsNaN) X(IsInfinite) X(RoundToSingle) X(SingleExponential)    \
  X(SingleLogarithm) X(SingleHyperbolicTangent) X(SingleSigmoid) X(SingleErrorFunction)
// clang-format on

#define HEDDLE_ENUMERATOR(Name) k##Name,
#define HEDDLE_COUNT(Name) +1
enum class BinaryCode : uint8_t { HEDDLE_BINARY_KERNELS(HEDDLE_ENUMERATOR) };
enum class UnaryCode : uint8_t { HEDDLE_UNARY_KERNELS(HEDDLE_ENUMERATOR) };
constexpr int kBinaryCodes = HEDDLE_BINARY_KERNELS(HEDDLE_COUNT);
constexpr int kUnaryCodes = HEDDLE_UNARY_KERNELS(HEDDLE_COUNT);
#undef HEDDLE_ENUMERATOR
#undef HEDDLE_COUNT

/// What an operator computes on matrices of floats: functions that have a definition in floats by that one
/// (docs/numerics.md, section 9), all others as on doubles.
constexpr UnaryCode InSingles(UnaryCode code) {
  switch (code) {
    case UnaryCode::kExponential: return UnaryCode::kSingleExponential;
    case UnaryCode::kLogarithm: return UnaryCode::kSingleLogarithm;
    case UnaryCode::kHyperbolicTangent: return UnaryCode::kSingleHyperbolicTangent;
    case UnaryCode::kSigmoid: return UnaryCode::kSingleSigmoid;
    case UnaryCode::kErrorFunction: return UnaryCode::kSingleErrorFunction;
    default: return code;
  }
}

}  // namespace heddle::ops
