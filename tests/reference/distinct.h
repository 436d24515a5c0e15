// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/values/matrix.h"

// What unique() and countDistinct() mean, as literal loops. For tests only.
namespace heddle::ops::reference {

/// The distinct cells of rows [row_begin, row_end) and columns [column_begin, column_end), ascending, NaN
/// last.
std::vector<double> Distinct(const Matrix& x, int64_t row_begin, int64_t row_end, int64_t column_begin,
                             int64_t column_end);
/// unique(x), unique(x, dir="r"), unique(x, dir="c").
Matrix Unique(const Matrix& x);
Matrix UniqueOfRows(const Matrix& x);
Matrix UniqueOfColumns(const Matrix& x);

}  // namespace heddle::ops::reference
