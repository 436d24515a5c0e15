// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/values/matrix.h"

// Factorizations as literal loops on small, well conditioned square matrices. For tests only.
namespace heddle::ops::reference {

/// The X for which A %*% X = B, by elimination with the largest pivot of each column.
Matrix Solve(const Matrix& a, const Matrix& b);
Matrix Inverse(const Matrix& a);
/// The lower L with positive diagonal for which L %*% t(L) = A, of a symmetric positive definite A.
Matrix Cholesky(const Matrix& a);
double Determinant(const Matrix& a);
/// Of each cell the determinant of `a` without its row and column, with the sign of its place, times `scale`.
Matrix Cofactors(const Matrix& a, double scale);
/// The B with positive eigenvalues for which B %*% B = A, of a symmetric positive definite A (Denman,
/// Beavers, The matrix sign function and computations in systems, 1976).
Matrix SquareRoot(const Matrix& a);

}  // namespace heddle::ops::reference
