// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Sizes are whatever a script says. Numbers of cells and bytes of a matrix that inference let pass fit in 63
// bits; what adds or multiplies several of them does it here, so that a sum that is too large stays the
// largest number instead of becoming a small one.
namespace heddle {

/// The most rows, and the most columns, of any matrix: as many cells in one row take 2 PiB.
constexpr int64_t kMostLength = int64_t{1} << 48;

/// The same of a matrix without cells: no memory bounds its length, but kernels go through its rows.
constexpr int64_t kMostLengthOfEmpty = INT32_MAX;

/// a + b and a * b of numbers that are not negative; INT64_MAX when the result is larger.
constexpr int64_t SaturatingSum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
constexpr int64_t SaturatingProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

}  // namespace heddle
