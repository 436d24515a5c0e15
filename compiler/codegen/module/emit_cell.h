// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/region/region.h"
#include "ops/simd/vector.h"

namespace heddle::codegen {

/// Emits the operator of a kUnary, kBinary or kSelect node on its operands, zero rules included; on
/// cell_operators.h.
ops::emitted::Vector EmitCell(const ops::RegionNode& node, ops::emitted::Vector a, ops::emitted::Vector b,
                              ops::emitted::Vector c);

/// What eight accumulators start at: ops::simd::StartOf.
ops::emitted::Vector EmitStart(ops::simd::Fold fold);
/// accumulator (fold) x, as ops/simd/aggregate.cc has it.
ops::emitted::Vector EmitFold(ops::simd::Fold fold, ops::emitted::Vector accumulator, ops::emitted::Vector x);

/// True for operators that arithmetic limits, not memory.
bool IsHeavyNode(const ops::RegionNode& node);

}  // namespace heddle::codegen
