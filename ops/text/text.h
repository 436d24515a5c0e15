// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/values/frame.h"
#include "core/values/matrix.h"

namespace heddle::ops {

/// Arguments of toString (language reference 2.9).
struct TextLayout {
  int64_t rows = 100;  ///< At most this many rows and columns are written.
  int64_t columns = 100;
  int decimals = 3;
  bool sparse = false;  ///< One line "i sep j sep value" per non-zero instead.
  std::string separator = " ";
  std::string line_end = "\n";
};

/// toString of a matrix: cells with exactly `decimals` digits joined by `separator`, every row ended by
/// `line_end`.
std::string MatrixToText(const Matrix& matrix, const TextLayout& layout);

/// toString of a frame: three lines that begin with '#' (its size, names, types), then cells joined by
/// `separator`; FP64 with exactly `decimals` digits, other cells with the text of a scalar, missing ones as
/// "null". Every line is ended by `line_end`.
std::string FrameToText(const Frame& frame, const TextLayout& layout);
/// The same of the rows and columns that are shown of a frame of that size.
std::string FrameToText(const Frame& shown, Shape whole, const TextLayout& layout);

}  // namespace heddle::ops
