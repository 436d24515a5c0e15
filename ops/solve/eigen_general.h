// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/solve/dense_cells.h"

namespace heddle::ops {

/// Eigenvalues of a square matrix that need not be symmetric, ascending, and vectors of length 1 in the
/// columns of `*vectors`, a %*% vectors = vectors %*% diag(values). Vectors depend on each other where the
/// matrix has too few. kFailedPrecondition when a value is complex.
///
/// Error: backward stable in the values (Golub, Van Loan, Matrix Computations, section 7.5: Hessenberg form
/// by Householder reflections, then the implicit double-shift QR).
Status EigenOfGeneral(const Cells& a, Eigen::VectorXd* values, Cells* vectors);

/// What it needs beside the matrix and its results: the Schur form and the vectors as they are found.
inline double BytesOfGeneral(double n) { return 4 * sizeof(double) * n * n; }

}  // namespace heddle::ops
