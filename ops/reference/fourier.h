// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <vector>

// What a Fourier transform is: n^2 products of long doubles. For tests only.
namespace heddle::ops::reference {

std::vector<std::complex<double>> Fourier(const std::vector<std::complex<double>>& x, bool inverse);

}  // namespace heddle::ops::reference
