// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/solve/dense_cells.h"

namespace heddle::ops {

/// Eigenvalues of a symmetric matrix, ascending, and orthonormal vectors in the columns of `vectors`; the
/// lower triangle is what is read. `vectors` may be `a`. kFailedPrecondition where the values are not found.
///
/// How:     tridiagonal form by Eigen, then implicit QR steps with the shift of Wilkinson from the last value
///          on (Golub, Van Loan, Matrix Computations, section 8.3.5). Steps need the tridiagonal numbers
///          only: their rotations are gathered, and the vectors turned by thousands of them at a time, some
///          rows after the other, which stay in the second-level cache meanwhile.
/// Order:   a rotation of columns x and y of a row is fma(c, x, s y) and fma(-s, x, c y). Rows know nothing
/// of
///          each other, so that neither threads nor the number of rows at a time can be seen.
/// Cost:    8/3 n^3 for the tridiagonal form, about 5 n^3 for the rotations, on all threads.
Status EigenOfSymmetric(Cells a, Eigen::VectorXd* values, Cells* vectors);

}  // namespace heddle::ops
