// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/values/matrix.h"

namespace heddle::ops::reference {

/// A %*% B as docs/numerics.md, section 3 defines it, by literal loops on whole matrices. Every cell ends in
/// `+ 0.0`. Absent cells of a CSR operand are skipped, except those of a B with at most 8 columns, which
/// count as 0.0.
Matrix Multiply(const Matrix& a, const Matrix& b);
/// The same of floats with more than 8 columns of B (docs/numerics.md, section 9); the result has floats.
Matrix MultiplySingles(const Matrix& a, const Matrix& b);
Matrix TransposedMultiplySingles(const Matrix& x, const Matrix& y);
/// t(X) %*% Y, the same way; a Y with at most 8 columns counts as dense.
Matrix TransposedMultiply(const Matrix& x, const Matrix& y);

}  // namespace heddle::ops::reference
