// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

namespace heddle::ops {

/// erf(x): the error function, 2/sqrt(pi) times the integral of e^-t^2 from 0 to x, cell by cell.
///
/// Shapes:  the result has the shape of x.
/// Format:  x's, as erf(0) is 0.
/// Error:   at most 1 ulp.
/// Cost:    three divisions and an exponential a cell (ops/simd/cellwise/math_error_function.h).
extern constexpr Operator kErf =
    CellFunction({.name = "erf",
                  .unary = UnaryCode::kErrorFunction,
                  .function = true,
                  .fusion = {.work = 30},
                  .derivative = "1.1283791670955126 * exp(-(x * x))"});  // 2 / sqrt(pi)

}  // namespace heddle::ops
