// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/neural/windows.h"

// What pooling and its gradients share.
namespace heddle::ops {

/// A maximum of cells of that type starts from here, so padding never wins.
template <typename Cell>
constexpr Cell kLeastOfPool = std::numeric_limits<Cell>::lowest();

/// Calls body(step) for that many cells from one window to the next, a constant where it is a common one:
/// loops over windows are vectorized then.
template <typename Body>
void WithStep(int64_t step, const Body& body) {
  if (step == 1) return body(std::integral_constant<int64_t, 1>{});
  if (step == 2) return body(std::integral_constant<int64_t, 2>{});
  body(step);
}

/// Calls body(line, step, begin, end, place) for the cells of the windows in row `row` of the result, rows,
/// then columns of a window ascending (or columns descending): windows [begin, end) of the row have a cell
/// there, that of window `begin` is *line, those of the next ones are `step` cells apart. `place` is where
/// that of window `begin` lies in its channel `cells`.
template <bool kLastColumnFirst = false, typename Cell, typename Body>
void EachCellOfWindows(const Windows& windows, const Cell* cells, int64_t row, const Body& body) {
  for (int64_t i = 0; i < windows.r; ++i) {
    const int64_t y = row * windows.stride_h - windows.pad_h + i;
    if (y < 0 || y >= windows.h) continue;
    for (int64_t k = 0; k < windows.s; ++k) {
      const int64_t j = kLastColumnFirst ? windows.s - 1 - k : k;
      const WindowRange inside = WindowsInside(windows, j);
      const int64_t place = y * windows.w + inside.begin * windows.stride_w - windows.pad_w + j;
      if (inside.begin < inside.end) body(cells + place, windows.stride_w, inside.begin, inside.end, place);
    }
  }
}

}  // namespace heddle::ops
