// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/fourier.h"

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

std::vector<Matrix> FourierOf(const Matrix& re, const Matrix* im, bool inverse, bool by_rows) {
  const int64_t rows = re.rows(), columns = re.columns();
  std::vector<Matrix> parts = {*Matrix::Dense(rows, columns), *Matrix::Dense(rows, columns)};
  double *const real = parts[0].mutable_data(), *const imaginary = parts[1].mutable_data();
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      real[i * columns + j] = re.At(i, j);
      imaginary[i * columns + j] = im == nullptr ? 0 : im->At(i, j);
    }
  // `count` cells from `first` on, `step` places apart.
  const auto transform = [&](int64_t first, int64_t count, int64_t step) {
    std::vector<std::complex<double>> cells;
    for (int64_t k = 0; k < count; ++k)
      cells.emplace_back(real[first + k * step], imaginary[first + k * step]);
    cells = Fourier(cells, inverse);
    for (int64_t k = 0; k < count; ++k) {
      real[first + k * step] = cells[static_cast<size_t>(k)].real();
      imaginary[first + k * step] = cells[static_cast<size_t>(k)].imag();
    }
  };
  for (int64_t i = 0; i < rows; ++i) transform(i * columns, columns, 1);
  for (int64_t j = 0; j < columns && !by_rows; ++j) transform(j, rows, columns);
  return parts;
}

std::vector<Matrix> FourierOfWindows(const Matrix& re, const Matrix* im, int64_t window, int64_t overlap) {
  const int64_t step = window - overlap;
  int64_t count = 0;
  while (count * step + overlap < re.columns()) ++count;
  std::vector<Matrix> parts = {*Matrix::Dense(re.rows(), count * window),
                               *Matrix::Dense(re.rows(), count * window)};
  for (int64_t i = 0; i < re.rows(); ++i)
    for (int64_t w = 0; w < count; ++w) {
      std::vector<std::complex<double>> cells(static_cast<size_t>(window));
      for (int64_t k = 0; k < window && w * step + k < re.columns(); ++k)
        cells[static_cast<size_t>(k)] = {re.At(i, w * step + k), im == nullptr ? 0 : im->At(i, w * step + k)};
      cells = Fourier(cells, false);
      for (int64_t k = 0; k < window; ++k) {
        const int64_t place = (i * count + w) * window + k;
        parts[0].mutable_data()[place] = cells[static_cast<size_t>(k)].real();
        parts[1].mutable_data()[place] = cells[static_cast<size_t>(k)].imag();
      }
    }
  return parts;
}

}  // namespace heddle::ops::reference
