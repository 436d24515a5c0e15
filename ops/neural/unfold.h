// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/neural/windows.h"

// Images as matrices whose columns, or rows, are windows, so that a convolution is a product. A cell of a
// window is numbered (channel * r + i) * s + j, a window of the result row * q + column.
namespace heddle::ops {

/// Windows [begin, end) of an image, a column each: out[cell * (end - begin) + window - begin], for all
/// windows.Filter() cells. Padding is 0.0.
void UnfoldToColumns(const Windows& windows, const double* image, int64_t begin, int64_t end, double* out);

/// The same windows, a row each, with the cells [first, last): out[(window - begin) * (last - first) + cell -
/// first].
void UnfoldToRows(const Windows& windows, const double* image, int64_t begin, int64_t end, int64_t first,
                  int64_t last, double* out);

/// Adds what the windows of one channel hold to the image they were cut from. `columns` is a row of Places()
/// for each of the r * s cells of a window. A cell of the image gets its addends in the order of those rows.
void FoldChannel(const Windows& windows, const double* columns, double* channel);

}  // namespace heddle::ops
