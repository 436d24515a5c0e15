// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/values/matrix.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/simd/cellwise/elementwise.h"

// Dense rows for loops over doubles: those of a matrix of doubles where they are, those of floats widened a
// few thousand cells at a time, which stay in the first-level cache (docs/numerics.md, section 9).
namespace heddle::ops {

inline bool HoldsSingles(const Matrix& x) { return x.element_type() == ElementType::kFloat32; }

/// Calls body(cells) with those of dense x as they are stored: loops that widen them in registers.
template <typename Body>
void WithCells(const Matrix& x, const Body& body) {
  HoldsSingles(x) ? body(x.data<float>()) : body(x.data());
}

/// Cells that are widened together.
constexpr int64_t kWidenedCells = 2048;

/// Calls body(cells, stride, row, rows) for columns [column, column + width) of rows [begin, end) of dense x:
/// once, or piece by piece in the order of rows. `row` counts from `begin`; pieces of rows that are shorter
/// than kWidenedCells / 8 begin at multiples of eight.
template <typename Body>
void EachRows(const Matrix& x, int64_t begin, int64_t end, int64_t column, int64_t width, const Body& body) {
  const int64_t n = x.columns();
  if (!HoldsSingles(x)) return body(x.data() + begin * n + column, n, int64_t{0}, end - begin);
  const int64_t fit = kWidenedCells / std::max<int64_t>(width, 1);
  const int64_t height = fit >= 8 ? fit / 8 * 8 : std::max<int64_t>(fit, 1);
  const int64_t stride = std::max<int64_t>(width, 1);
  AlignedArray room(std::min(height, end - begin) * stride + 8);
  const WidenKernel widen = SelectedElementwiseKernels().widen;
  for (int64_t row = 0; row < end - begin; row += height) {
    const int64_t rows = std::min(height, end - begin - row);
    const float* const from = x.data<float>() + (begin + row) * n + column;
    if (width == n)
      widen(from, room.data(), rows * n);
    else
      for (int64_t i = 0; i < rows; ++i) widen(from + i * n, room.data() + i * stride, width);
    body(static_cast<const double*>(room.data()), stride, row, rows);
  }
}

/// Calls body(cells, at, count) for `count` cells of dense x, row-major from its cell `first` on: once, or
/// piece by piece, each but the last a multiple of eight cells.
template <typename Body>
void EachCells(const Matrix& x, int64_t first, int64_t count, const Body& body) {
  if (!HoldsSingles(x)) return body(x.data() + first, count);
  alignas(64) double room[kWidenedCells];
  const WidenKernel widen = SelectedElementwiseKernels().widen;
  for (int64_t at = 0; at < count; at += kWidenedCells) {
    const int64_t here = std::min(kWidenedCells, count - at);
    widen(x.data<float>() + first + at, room, here);
    body(static_cast<const double*>(room), here);
  }
}

}  // namespace heddle::ops
