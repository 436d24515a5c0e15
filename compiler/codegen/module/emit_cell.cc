// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/module/emit_cell.h"

#include "ops/region/region_cell.h"

namespace heddle::codegen {

using namespace ops::emitted;
using ops::RegionNode;
using ops::RegionOp;
using ops::simd::Fold;

Vector EmitCell(const RegionNode& node, Vector a, Vector b, Vector c) { return CellOf(node, a, b, c); }
Vector EmitStart(Fold fold) { return StartOfFold(fold); }
Vector EmitFold(Fold fold, Vector a, Vector x) { return FoldOf(fold, a, x); }

bool IsHeavyNode(const RegionNode& node) {
  return (node.op == RegionOp::kUnary && IsHeavy(node.unary)) ||
         (node.op == RegionOp::kBinary && IsHeavy(node.binary));
}

}  // namespace heddle::codegen
