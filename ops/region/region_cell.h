// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/region/region.h"
#include "ops/simd/cellwise/cell_operators.h"

// What a node of a region computes, on the types of ops/simd/vector.h or of a header that takes its place
// (HEDDLE_SIMD_VECTOR_HEADER): generators of code are these functions on types that write code.
namespace heddle::ops::HEDDLE_SIMD_NAMESPACE {

HEDDLE_SIMD_INLINE Vector UnaryOf(UnaryCode code, Vector a) {
  switch (code) {
#define HEDDLE_CASE(Name) \
  case UnaryCode::k##Name: return Name##Operator::Apply(a);
    HEDDLE_UNARY_KERNELS(HEDDLE_CASE)
#undef HEDDLE_CASE
  }
  return a;
}

HEDDLE_SIMD_INLINE Vector BinaryOf(BinaryCode code, Vector a, Vector b) {
  switch (code) {
#define HEDDLE_CASE(Name) \
  case BinaryCode::k##Name: return Name##Operator::Apply(a, b);
    HEDDLE_BINARY_KERNELS(HEDDLE_CASE)
#undef HEDDLE_CASE
  }
  return a;
}

/// The operator of a kUnary, kBinary or kSelect node on its operands, zero rules included.
HEDDLE_SIMD_INLINE Vector CellOf(const RegionNode& node, Vector a, Vector b, Vector c) {
  Vector result = a;
  if (node.op == RegionOp::kSelect) {
    result = Select(IsTrue(a), b, c);
  } else if (node.op == RegionOp::kUnary) {
    result = UnaryOf(node.unary, a);
  } else {
    result = BinaryOf(node.binary, a, b);
    if (node.skips_a) result = KeepWhere(IsTrue(a), result);
    if (node.skips_b) result = KeepWhere(IsTrue(b), result);
  }
  return result;
}

/// What eight accumulators start at: simd::StartOf.
HEDDLE_SIMD_INLINE Vector StartOfFold(simd::Fold fold) {
  switch (fold) {
    case simd::Fold::kAdd: return Zero();
    case simd::Fold::kMultiply: return Broadcast(1.0);
    case simd::Fold::kMinimum: return Broadcast(kInfinity);
    case simd::Fold::kMaximum: break;
  }
  return Broadcast(-kInfinity);
}

/// accumulator (fold) x, as ops/simd/aggregate.cc has it.
HEDDLE_SIMD_INLINE Vector FoldOf(simd::Fold fold, Vector a, Vector x) {
  switch (fold) {
    case simd::Fold::kAdd: return a + x;
    case simd::Fold::kMultiply: return a * x;
    // x86 min gives its second operand for NaN and for two zeros; OR of both orders keeps any NaN and any
    // minus sign.
    case simd::Fold::kMinimum: return Or(Min(a, x), Min(x, a));
    // AND keeps any plus sign of two zeros; a NaN is put back as all ones.
    case simd::Fold::kMaximum: break;
  }
  return Or(And(Max(a, x), Max(x, a)), KeepWhere(Unordered(a, x), OfBits(BroadcastInteger(-1))));
}

}  // namespace heddle::ops::HEDDLE_SIMD_NAMESPACE
