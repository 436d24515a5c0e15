// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/values/matrix.h"
#include "core/values/value.h"

// What the selecting operators mean, as literal loops. Slow; results are dense. For tests only.
namespace heddle::ops::reference {

/// Numbers (0-based) of the rows or columns that removeEmpty keeps; `select` may be null.
std::vector<int64_t> Kept(const Matrix& x, bool rows, const Matrix* select);
/// Row numbers (0-based) in sorted order by the 0-based `columns`: insertion sort.
std::vector<int64_t> SortedRows(const Matrix& x, const std::vector<int64_t>& columns, bool decreasing);
/// table(A, B, W) of the given size; b and w are called for each cell of A in row-major order. Adds up by
/// explicit recursion over all panels of docs/numerics.md, empty ones included.
Matrix Table(const Matrix& a, const std::vector<double>& b, const std::vector<double>& w, int64_t rows,
             int64_t columns);
/// The adjoint of the weights, a column or one number, from that of `table`; keys are columns, those of b or
/// one number.
Value TableAdjoint(const Matrix& a, const Value& b, const Value& weights, const Matrix& table);
Matrix Replace(const Matrix& x, double pattern, double replacement);
/// C and N of rowClassMeet(A, B), every column compared with every other one; cells are small whole numbers.
std::vector<Matrix> ClassMeet(const Matrix& a, const Matrix& b);

}  // namespace heddle::ops::reference
