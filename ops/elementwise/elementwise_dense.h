// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "core/values/matrix.h"
#include "ops/base/broadcast.h"
#include "ops/simd/cellwise/elementwise.h"

// Cell-wise operators with a dense result. Parallel over cells or rows; nothing depends on how they are cut.
namespace heddle::ops {

/// One operand: the rows of the result for kCells and kColumn, the whole row for kRow.
struct Operand {
  Pattern pattern = Pattern::kCells;
  Matrix matrix;
  double scalar = 0;
};

/// rows x columns cells of `a op b`. Any format of operands. Kernels poll `cancelled` (may be null) between
/// tiles.
Result<Matrix> DenseBinary(BinaryCode code, const Operand& a, const Operand& b, int64_t rows, int64_t columns,
                           const std::atomic<bool>* cancelled);
/// f(x) for each cell.
Result<Matrix> DenseUnary(UnaryCode code, const Matrix& x, const std::atomic<bool>* cancelled);
/// condition != 0 ? a : b; kCells or kScalar operands.
Result<Matrix> DenseSelect(const Operand& condition, const Operand& a, const Operand& b, int64_t rows,
                           int64_t columns, const std::atomic<bool>* cancelled);

}  // namespace heddle::ops
