// SPDX-License-Identifier: Apache-2.0
#include "ops/neural/unfold.h"

#include <algorithm>
#include <cstring>

namespace heddle::ops {
namespace {

// Where a cell lies in a window whose first cell is (0, 0).
struct Place {
  int64_t channel, i, j;
};
Place PlaceOf(const Windows& windows, int64_t number) {
  const int64_t area = windows.r * windows.s;
  return {number / area, number % area / windows.s, number % windows.s};
}

// Rows of images are short: a call for each would take as long as the copy.
template <typename Cell>
Cell* CopyRun(const Cell* from, int64_t count, Cell* out) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) std::memcpy(out + i, from + i, 8 * sizeof(Cell));
  if ((count & 4) != 0) std::memcpy(out + i, from + i, 4 * sizeof(Cell)), i += 4;
  if ((count & 2) != 0) std::memcpy(out + i, from + i, 2 * sizeof(Cell)), i += 2;
  if ((count & 1) != 0) out[i] = from[i];
  return out + count;
}

// out[i] = from[i * stride]; the end of out.
template <typename Cell>
Cell* CopyEvery(const Cell* from, int64_t stride, int64_t count, Cell* out) {
  if (stride == 1) return CopyRun(from, count, out);
  if (stride == 2) {  // The vectorizer knows two.
    for (int64_t i = 0; i < count; ++i) out[i] = from[2 * i];
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = from[i * stride];
  }
  return out + count;
}

// to[i * stride] += cells[i]
template <typename Cell>
void AddToEvery(const Cell* cells, int64_t count, int64_t stride, Cell* to) {
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] += cells[i];
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * stride] += cells[i];
  }
}

}  // namespace

template <typename Cell>
void Unfold(const Windows& windows, const Cell* image, int64_t begin, int64_t end, int64_t first_cell,
            int64_t last_cell, Cell* columns, int64_t stride) {
  for (int64_t number = first_cell; number < last_cell; ++number, columns += stride) {
    Cell* out = columns;
    const Place cell = PlaceOf(windows, number);
    const Cell* const channel = image + cell.channel * windows.h * windows.w;
    const WindowRange inside = WindowsInside(windows, cell.j);
    for (int64_t window = begin; window < end;) {
      // Windows beside each other, as far as this row of the result has them.
      const int64_t row = window / windows.q, first = window - row * windows.q;
      const int64_t last = std::min(end - row * windows.q, windows.q);
      const int64_t y = row * windows.stride_h - windows.pad_h + cell.i;
      window = row * windows.q + last;
      if (y < 0 || y >= windows.h) {
        out = std::fill_n(out, last - first, Cell{0});
        continue;
      }
      const int64_t from = std::clamp(inside.begin, first, last), to = std::clamp(inside.end, from, last);
      out = std::fill_n(out, from - first, Cell{0});
      const Cell* const line = channel + y * windows.w + from * windows.stride_w - windows.pad_w + cell.j;
      out = CopyEvery(line, windows.stride_w, to - from, out);
      out = std::fill_n(out, last - to, Cell{0});
    }
  }
}

template <typename Cell>
void FoldChannel(const Windows& windows, int64_t begin, int64_t end, const Cell* columns, Cell* channel) {
  for (int64_t i = 0; i < windows.r; ++i)
    for (int64_t j = 0; j < windows.s; ++j) {
      const WindowRange inside = WindowsInside(windows, j);
      for (int64_t row = begin; row < end; ++row) {
        const int64_t y = row * windows.stride_h - windows.pad_h + i;
        const Cell* const line = columns + inside.begin;
        columns += windows.q;
        if (y < 0 || y >= windows.h) continue;
        AddToEvery(line, inside.end - inside.begin, windows.stride_w,
                   channel + y * windows.w + inside.begin * windows.stride_w - windows.pad_w + j);
      }
    }
}

#define HEDDLE_WINDOWS_OF(Cell)                                                                          \
  template void Unfold(const Windows&, const Cell*, int64_t, int64_t, int64_t, int64_t, Cell*, int64_t); \
  template void FoldChannel(const Windows&, int64_t, int64_t, const Cell*, Cell*);
HEDDLE_WINDOWS_OF(double)
HEDDLE_WINDOWS_OF(float)
#undef HEDDLE_WINDOWS_OF

}  // namespace heddle::ops
