// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/values/matrix.h"

// Decompositions as literal loops, by other algorithms than those of ops/solve where there is a simple one:
// for tests, which compare within the bounds that the operators state. Dense input without NaN.
namespace heddle::ops::reference {

/// Values (n x 1, ascending) and vectors of a symmetric matrix by Jacobi's rotations, with the signs of
/// eigen.
std::vector<Matrix> Eigen(const Matrix& a);

/// The adjoint of a symmetric matrix, of whose eigenvalues and vectors the adjoints are given or nullptr;
/// cell by cell: the derivative of each value and vector by cells [i, j] and [j, i] together, halved.
Matrix EigenAdjoint(const Matrix& values, const Matrix& vectors, const Matrix* adjoint_of_values,
                    const Matrix* adjoint_of_vectors);

/// U, S, V by rotations of pairs of columns until all are orthogonal (one-sided Jacobi), with the signs of
/// svd. Vectors of singular values that are zero are left zero in U.
std::vector<Matrix> SingularValues(const Matrix& x);

/// H, R by Householder's reflections, one column after the other.
std::vector<Matrix> Qr(const Matrix& x);

/// P, L, U by elimination with the largest pivot of each column.
std::vector<Matrix> Lu(const Matrix& a);

}  // namespace heddle::ops::reference
