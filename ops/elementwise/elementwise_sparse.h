// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/values/matrix.h"
#include "ops/elementwise/elementwise_dense.h"
#include "ops/simd/cellwise/elementwise.h"

// Cell-wise operators with a CSR result (docs/numerics.md, section 7). Results hold no explicit zeros, so
// -0.0 becomes +0.0.
namespace heddle::ops {

/// A CSR matrix with the entries of a CSR x, from offset 0 on; its values are the caller's to write.
Result<Matrix> SamePattern(const Matrix& x, ElementType type = ElementType::kFloat64);
/// Without the entries that are zero (no kernel stores zeros); x itself when there are none. Parallel.
Result<Matrix> DropZeros(const Matrix& x);
/// The same of a matrix that the caller has made and nobody else holds: where there is no memory for a copy,
/// the entries that stay move forward in its own.
Result<Matrix> DropZerosOfOwn(Matrix x);

/// f(x) for an f with f(0) = 0.
Result<Matrix> SparseUnary(UnaryCode code, const Matrix& x);

/// `a op b` where BinaryFormat says kSparse: at least one operand is kCells in CSR form, and a dense matrix
/// on the other side may have any pattern. Cost: the entries, except `/` by a matrix, which is searched for
/// zeros and NaN. When absent cells do not give zeros after all (X / 0, X^-1, X != 3) every cell is computed.
Result<Matrix> SparseBinary(BinaryCode code, const Operand& a, const Operand& b, int64_t rows,
                            int64_t columns, const std::atomic<bool>* cancelled);

/// condition != 0 ? a : b where SelectFormat says kSparse; kCells or kScalar operands. Cost: the entries.
Result<Matrix> SparseSelect(const Operand& condition, const Operand& a, const Operand& b);

}  // namespace heddle::ops
