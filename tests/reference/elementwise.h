// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/values/value.h"

// Cell-wise operators as literal loops, for tests. Storage of the arguments is their format (docs/numerics.md
// R6).
namespace heddle::ops::reference {

/// One cell. Functions such as exp have one definition (ops/simd/cellwise/math.h), which is checked against
/// exact values elsewhere.
double BinaryCell(std::string_view op, double x, double y);
double UnaryCell(std::string_view op, double x);

/// The cells of `a op b` as a dense matrix; a and b have shapes that language reference 2.4 allows, one is a
/// matrix.
Matrix Binary(std::string_view op, const Value& a, const Value& b);
Matrix Unary(std::string_view op, const Matrix& x);
Matrix Select(const Value& condition, const Value& a, const Value& b);

}  // namespace heddle::ops::reference
