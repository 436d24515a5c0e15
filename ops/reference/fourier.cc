// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/fourier.h"

#include <cmath>
#include <cstddef>
#include <numbers>

namespace heddle::ops::reference {

std::vector<std::complex<double>> Fourier(const std::vector<std::complex<double>>& x, bool inverse) {
  const size_t n = x.size();
  std::vector<std::complex<double>> y(n);
  for (size_t k = 0; k < n; ++k) {
    long double re = 0, im = 0;
    for (size_t j = 0; j < n; ++j) {
      const long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(j * k % n) /
                                static_cast<long double>(n);
      const long double cosine = std::cos(angle), sine = inverse ? std::sin(angle) : -std::sin(angle);
      re += x[j].real() * cosine - x[j].imag() * sine;
      im += x[j].real() * sine + x[j].imag() * cosine;
    }
    const auto scale = inverse ? static_cast<long double>(n) : 1.0L;
    y[k] = {static_cast<double>(re / scale), static_cast<double>(im / scale)};
  }
  return y;
}

}  // namespace heddle::ops::reference
