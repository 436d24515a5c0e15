// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

// Products of columns of small whole numbers, eight times as many in an instruction as of doubles.
namespace heddle::ops::simd {

/// Columns are cut into blocks of `side`, and have as many zeros behind their cells as make a multiple of
/// kByteRows rows.
struct ByteProductKernel {
  int64_t side;
  /// sums[i * side + j] += the sum of a[i][r] * b[j][r] over `rows` rows, at most kMostByteRows, where a[i] =
  /// a + i * stride and b[j] = b + j * stride are numbers of 0 to 127, i < side, j < side.
  void (*add)(const uint8_t* a, const uint8_t* b, int64_t stride, int64_t rows, int64_t* sums);
};
constexpr int64_t kByteRows = 64, kMostByteRows = 1 << 16;

extern const ByteProductKernel kByteProductsAvx2, kByteProductsVnni;
/// Which of them this machine can run and the selected CPU (ops/base/cpu.h) allows: the sums are the same.
const ByteProductKernel& SelectedByteProducts();

/// bytes[i] = cells[i], i < count. False, and something, where a cell is no whole number from 0 to 127.
bool ToBytes(const double* cells, int64_t count, uint8_t* bytes);

}  // namespace heddle::ops::simd
