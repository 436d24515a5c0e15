// SPDX-License-Identifier: Apache-2.0
#include "ops/neural/unfold.h"

#include <algorithm>

namespace heddle::ops {
namespace {

// A cell of a window: where it lies in a window whose first cell is (0, 0).
struct Cell {
  int64_t channel, i, j;
};
Cell CellOf(const Windows& windows, int64_t number) {
  const int64_t area = windows.r * windows.s;
  return {number / area, number % area / windows.s, number % windows.s};
}

}  // namespace

void UnfoldToColumns(const Windows& windows, const double* image, int64_t begin, int64_t end, double* out) {
  for (int64_t number = 0; number < windows.Filter(); ++number) {
    const Cell cell = CellOf(windows, number);
    const double* const channel = image + cell.channel * windows.h * windows.w;
    for (int64_t window = begin; window < end;) {
      // Windows beside each other, as far as this row of the result has them.
      const int64_t row = window / windows.q, row_end = std::min(end, (row + 1) * windows.q);
      const int64_t y = row * windows.stride_h - windows.pad_h + cell.i;
      if (y < 0 || y >= windows.h) {
        out = std::fill_n(out, row_end - window, 0.0);
        window = row_end;
        continue;
      }
      const double* const line = channel + y * windows.w;
      int64_t x = (window - row * windows.q) * windows.stride_w - windows.pad_w + cell.j;
      for (; window < row_end; ++window, x += windows.stride_w)
        *out++ = x >= 0 && x < windows.w ? line[x] : 0.0;
    }
  }
}

void UnfoldToRows(const Windows& windows, const double* image, int64_t begin, int64_t end, int64_t first,
                  int64_t last, double* out) {
  for (int64_t window = begin; window < end; ++window) {
    const int64_t top = window / windows.q * windows.stride_h - windows.pad_h;
    const int64_t left = window % windows.q * windows.stride_w - windows.pad_w;
    for (int64_t number = first; number < last;) {
      const Cell cell = CellOf(windows, number);
      const int64_t line_end = std::min(last, number + windows.s - cell.j);
      const int64_t y = top + cell.i;
      if (y < 0 || y >= windows.h) {
        out = std::fill_n(out, line_end - number, 0.0);
        number = line_end;
        continue;
      }
      const double* const line = image + (cell.channel * windows.h + y) * windows.w;
      for (int64_t x = left + cell.j; number < line_end; ++number, ++x)
        *out++ = x >= 0 && x < windows.w ? line[x] : 0.0;
    }
  }
}

void FoldChannel(const Windows& windows, const double* columns, double* channel) {
  for (int64_t i = 0; i < windows.r; ++i)
    for (int64_t j = 0; j < windows.s; ++j)
      for (int64_t row = 0; row < windows.p; ++row) {
        const int64_t y = row * windows.stride_h - windows.pad_h + i;
        const double* const line = columns;
        columns += windows.q;
        if (y < 0 || y >= windows.h) continue;
        for (int64_t column = 0; column < windows.q; ++column) {
          const int64_t x = column * windows.stride_w - windows.pad_w + j;
          if (x >= 0 && x < windows.w) channel[y * windows.w + x] += line[column];
        }
      }
}

}  // namespace heddle::ops
