// SPDX-License-Identifier: Apache-2.0
#include "ops/neural/unfold.h"

#include <algorithm>

#include "core/values/panels.h"

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

// Windows of a row of the result whose column j lies within the image.
struct Range {
  int64_t begin, end;
};
Range WindowsInside(const Windows& windows, int64_t j) {
  const int64_t before = std::max<int64_t>(0, windows.pad_w - j), room = windows.w + windows.pad_w - j;
  const int64_t begin = std::min(windows.q, CeilDivide(before, windows.stride_w));
  return {begin, room <= 0 ? begin : std::clamp(CeilDivide(room, windows.stride_w), begin, windows.q)};
}

// out[i] = from[i * stride]; the end of out.
double* CopyEvery(const double* from, int64_t stride, int64_t count, double* out) {
  if (stride == 1) return std::copy_n(from, count, out);
  if (stride == 2) {  // The vectorizer knows two.
    for (int64_t i = 0; i < count; ++i) out[i] = from[2 * i];
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = from[i * stride];
  }
  return out + count;
}

// to[i * stride] += cells[i]
void AddToEvery(const double* cells, int64_t count, int64_t stride, double* to) {
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] += cells[i];
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * stride] += cells[i];
  }
}

}  // namespace

void Unfold(const Windows& windows, const double* image, int64_t begin, int64_t end, int64_t first_cell,
            int64_t last_cell, double* out) {
  for (int64_t number = first_cell; number < last_cell; ++number) {
    const Cell cell = CellOf(windows, number);
    const double* const channel = image + cell.channel * windows.h * windows.w;
    const Range inside = WindowsInside(windows, cell.j);
    for (int64_t window = begin; window < end;) {
      // Windows beside each other, as far as this row of the result has them.
      const int64_t row = window / windows.q, first = window - row * windows.q;
      const int64_t last = std::min(end - row * windows.q, windows.q);
      const int64_t y = row * windows.stride_h - windows.pad_h + cell.i;
      window = row * windows.q + last;
      if (y < 0 || y >= windows.h) {
        out = std::fill_n(out, last - first, 0.0);
        continue;
      }
      const int64_t from = std::clamp(inside.begin, first, last), to = std::clamp(inside.end, from, last);
      out = std::fill_n(out, from - first, 0.0);
      const double* const line = channel + y * windows.w + from * windows.stride_w - windows.pad_w + cell.j;
      out = CopyEvery(line, windows.stride_w, to - from, out);
      out = std::fill_n(out, last - to, 0.0);
    }
  }
}

void FoldChannel(const Windows& windows, int64_t begin, int64_t end, const double* columns, double* channel) {
  for (int64_t i = 0; i < windows.r; ++i)
    for (int64_t j = 0; j < windows.s; ++j) {
      const Range inside = WindowsInside(windows, j);
      for (int64_t row = begin; row < end; ++row) {
        const int64_t y = row * windows.stride_h - windows.pad_h + i;
        const double* const line = columns + inside.begin;
        columns += windows.q;
        if (y < 0 || y >= windows.h) continue;
        AddToEvery(line, inside.end - inside.begin, windows.stride_w,
                   channel + y * windows.w + inside.begin * windows.stride_w - windows.pad_w + j);
      }
    }
}

}  // namespace heddle::ops
