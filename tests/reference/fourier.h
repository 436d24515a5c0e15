// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <vector>

#include "core/values/matrix.h"

// What a Fourier transform is: n^2 products of long doubles. For tests only.
namespace heddle::ops::reference {

std::vector<std::complex<double>> Fourier(const std::vector<std::complex<double>>& x, bool inverse);

/// Real and imaginary part of the transform of each row and, unless `by_rows`, then of each column. `im` may
/// be null.
std::vector<Matrix> FourierOf(const Matrix& re, const Matrix* im, bool inverse, bool by_rows);
/// Of windows of each row that begin every window - overlap columns, one after the other, the last with zeros
/// at its end.
std::vector<Matrix> FourierOfWindows(const Matrix& re, const Matrix* im, int64_t window, int64_t overlap);

}  // namespace heddle::ops::reference
