// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/values/matrix.h"

// What the operators that move cells mean, as literal loops over single cells. Slow; results are dense. For
// tests only.
namespace heddle::ops::reference {

Matrix Transpose(const Matrix& x);
Matrix Cbind(const std::vector<Matrix>& parts);
Matrix Rbind(const std::vector<Matrix>& parts);
Matrix Diag(const Matrix& x);
Matrix Rev(const Matrix& x);
/// Row g has the columns of group g of all rows.
Matrix Regroup(const Matrix& x, int64_t groups);
/// Bounds are 1-based and inclusive.
Matrix Index(const Matrix& x, int64_t rl, int64_t ru, int64_t cl, int64_t cu);
/// v of the region's size, or 1 x 1.
Matrix IndexAssign(const Matrix& x, const Matrix& v, int64_t rl, int64_t ru, int64_t cl, int64_t cu);
/// Row, column or cell g repeated to so many cells.
Matrix SpreadTo(const Matrix& g, int64_t rows, int64_t columns);
Matrix Reshape(const Matrix& x, int64_t rows, int64_t columns, bool by_row);

}  // namespace heddle::ops::reference
