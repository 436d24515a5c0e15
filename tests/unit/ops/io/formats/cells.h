// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "core/environment/random.h"
#include "core/values/matrix.h"

// Cells that formats which keep every bit are tested with.
namespace heddle::ops {

/// Empty ones, wide and long ones, and some of several pieces.
inline const std::vector<std::pair<int64_t, int64_t>> kShapes = {
    {0, 0}, {0, 3}, {3, 0}, {1, 1}, {1, 300'000}, {300'000, 1}, {7, 5}, {1000, 333}, {5, 40'000}, {513, 257}};

/// Cells of every kind, many of them zero where `density` is small.
inline Matrix RandomCells(int64_t rows, int64_t columns, double density, SeededRandom* random) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double kinds[] = {1.5,       -0.0,       std::numeric_limits<double>::quiet_NaN(),
                          kInfinity, -kInfinity, std::numeric_limits<double>::denorm_min(),
                          -1e-310,   1e300,      0x1p-1022,
                          1.0 / 3,   -7,         std::numeric_limits<double>::max()};
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t k = 0; k < rows * columns; ++k) {
    const uint64_t drawn = random->Next();
    const bool zero = static_cast<double>(drawn % 1000) >= density * 1000;
    matrix.mutable_data()[k] = zero ? 0 : kinds[drawn / 1000 % std::size(kinds)];
  }
  return matrix;
}

/// Compares bits, so that -0.0 is not 0.0; what is no number equals what is none.
inline void ExpectSameBits(const Matrix& a, const Matrix& b) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < a.columns(); ++j) {
      const double x = a.At(i, j), y = b.At(i, j);
      ASSERT_TRUE(std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y) ||
                  (std::isnan(x) && std::isnan(y)))
          << i << " " << j << ": " << x << " " << y;
    }
}

}  // namespace heddle::ops
