// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <span>

#include "ops/elementwise/elementwise_dense.h"
#include "ops/region/region.h"

namespace heddle::ops {

/// A cell-wise operator on dense matrices of floats, with floats for a result: runs of a few hundred cells
/// are widened, computed and narrowed in the first-level cache; functions of floats (SingleFunctions) need
/// neither. `op` is a kUnary, kBinary or kSelect node
/// whose operands are 0, 1 and 2; operands hold dense floats or a scalar. rows x columns is the shape of the
/// result.
Result<Matrix> SingleCells(RegionNode op, std::span<const Operand> operands, int64_t rows, int64_t columns,
                           const std::atomic<bool>* cancelled);

}  // namespace heddle::ops
