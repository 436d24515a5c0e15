// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/neural/windows.h"

// Images as matrices whose columns are windows, so that a convolution is a product. A cell of a
// window is numbered (channel * r + i) * s + j, a window of the result row * q + column.
namespace heddle::ops {

/// Windows [begin, end) of an image, a column each, and of them the cells [first, last): out[(cell - first) *
/// stride + window - begin]. Padding is 0.0. Cells are doubles or floats.
template <typename Cell>
void Unfold(const Windows& windows, const Cell* image, int64_t begin, int64_t end, int64_t first,
            int64_t last, Cell* out, int64_t stride);

/// Adds what the windows in rows [begin, end) of the result hold of one channel to the image they were cut
/// from. `columns` is a row of (end - begin) * q places for each of the r * s cells of a window. A cell of
/// the image gets its addends by rows of the window ascending, then by columns: over several calls, too, if
/// they take rows of the result from the last to the first.
template <typename Cell>
void FoldChannel(const Windows& windows, int64_t begin, int64_t end, const Cell* columns, Cell* channel);

}  // namespace heddle::ops
