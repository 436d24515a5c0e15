// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/module/emit_cell.h"

#include "ops/simd/cellwise/cell_operators.h"

namespace heddle::codegen {

using namespace ops::emitted;
using ops::RegionNode;
using ops::RegionOp;
using ops::simd::Fold;

namespace {

Vector EmitUnaryOperator(ops::UnaryCode code, Vector a) {
  switch (code) {
#define HEDDLE_CASE(Name) \
  case ops::UnaryCode::k##Name: return Name##Operator::Apply(a);
    HEDDLE_UNARY_KERNELS(HEDDLE_CASE)
#undef HEDDLE_CASE
  }
  return a;
}

Vector EmitBinaryOperator(ops::BinaryCode code, Vector a, Vector b) {
  switch (code) {
#define HEDDLE_CASE(Name) \
  case ops::BinaryCode::k##Name: return Name##Operator::Apply(a, b);
    HEDDLE_BINARY_KERNELS(HEDDLE_CASE)
#undef HEDDLE_CASE
  }
  return a;
}

}  // namespace

Vector EmitCell(const RegionNode& node, Vector a, Vector b, Vector c) {
  if (node.op == RegionOp::kSelect) return Select(IsTrue(a), b, c);
  if (node.op == RegionOp::kUnary) return EmitUnaryOperator(node.unary, a);
  Vector result = EmitBinaryOperator(node.binary, a, b);
  if (node.skips_a) result = KeepWhere(IsTrue(a), result);
  if (node.skips_b) result = KeepWhere(IsTrue(b), result);
  return result;
}

Vector EmitStart(Fold fold) {
  switch (fold) {
    case Fold::kAdd: return Zero();
    case Fold::kMultiply: return Broadcast(1.0);
    case Fold::kMinimum: return Broadcast(kInfinity);
    case Fold::kMaximum: break;
  }
  return Broadcast(-kInfinity);
}

Vector EmitFold(Fold fold, Vector a, Vector x) {
  switch (fold) {
    case Fold::kAdd: return a + x;
    case Fold::kMultiply: return a * x;
    // x86 min gives its second operand for NaN and for two zeros; OR of both orders keeps any NaN and any
    // minus sign.
    case Fold::kMinimum: return Or(Min(a, x), Min(x, a));
    // AND keeps any plus sign of two zeros; a NaN is put back as all ones.
    case Fold::kMaximum: break;
  }
  return Or(And(Max(a, x), Max(x, a)), KeepWhere(Unordered(a, x), OfBits(BroadcastInteger(-1))));
}

bool IsHeavyNode(const RegionNode& node) {
  return (node.op == RegionOp::kUnary && IsHeavy(node.unary)) ||
         (node.op == RegionOp::kBinary && IsHeavy(node.binary));
}

}  // namespace heddle::codegen
