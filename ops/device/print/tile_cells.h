// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "core/values/panels.h"

// How the printed loops of a tile program name cells.
namespace heddle::ops::printed {

/// A cell of a tile as a loop over cells names it: row `i`, column `j`, place `c` of rows without gaps.
struct CellIndex {
  int64_t columns = 0;
  bool needs_row = false, needs_column = false;  ///< Whether somebody has asked for `i` and `j`.
};

/// Cells of a value as the kernel reads and writes them: cell (i, j) of a tile is `base[(i) * stride + j]`.
struct Cells {
  std::string base;
  int64_t stride = 0;
  bool single = false;
  bool is_large = false;  ///< There are more cells than an int counts.
  std::string At(std::string_view i, std::string_view j) const {
    if (stride == 1) return fmt::format("{}[{}]", base, i);
    // Rows of long rows may be further apart than an int counts, too.
    const bool is_far = is_large || stride > kColumnChunk;
    return fmt::format("{}[({}) * {}{} + ({})]", base, i, stride, is_far ? "L" : "", j);
  }
  std::string At(CellIndex& index) const {
    if (stride == index.columns) return fmt::format("{}[c]", base);
    index.needs_row = index.needs_column = true;
    return At("i", "j");
  }
  std::string Widened(const std::string& cell) const { return single ? "(double)" + cell : cell; }
  std::string Load(std::string_view i, std::string_view j) const { return Widened(At(i, j)); }
  std::string Load(CellIndex& index) const { return Widened(At(index)); }
  /// Of cells that are floats, whatever type they are stored in.
  std::string LoadSingle(std::string_view i, std::string_view j) const {
    return single ? At(i, j) : fmt::format("convert_float_rte({})", At(i, j));
  }
  std::string Stored(const std::string& value) const {
    return single ? fmt::format("convert_float_rte({})", value) : value;
  }
};

}  // namespace heddle::ops::printed
