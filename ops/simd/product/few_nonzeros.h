// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

namespace heddle::ops::simd {

/// out[j * k + c] = fma(x[i * x_stride + j], y[i * y_stride + c], .), i ascending, for j < n, c < k: t(x) y,
/// whose x is 0 almost everywhere, as where it says which row belongs to which group. Stops before the first
/// rows that have many other cells, and returns how many rows are done; none, too, where k is so small that
/// looking would take longer.
///
/// A term 0 * y is left out where y is finite: it adds nothing but to a sum of -0.0, so results are equal
/// once +0.0 is added to them. Cost: x is read once, y at its cells that count.
int64_t AddFewNonzeros(const double* x, int64_t rows, int64_t x_stride, int64_t n, const double* y,
                       int64_t y_stride, int64_t k, double* out);

}  // namespace heddle::ops::simd
