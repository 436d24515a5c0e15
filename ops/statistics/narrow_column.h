// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/values/matrix.h"

namespace heddle::ops {

/// Cells that are drawn of the rows [begin, end) of a column of `total` rows: one of each of some hundreds or
/// ten thousands of equal pieces of all rows, at a place in it that depends on its number alone. None of a
/// short column.
Result<Matrix> DrawCells(std::span<const double> cells, int64_t begin, int64_t total);

/// Values between which some cells are, both ends included, -0.0 before 0.0.
struct ValueRange {
  double low = 0, high = 0;
};
/// Ranges, ascending and apart, in which the cells at these pairs of ranks, counted from 1, very likely are,
/// as the drawn cells of all `total` tell. None where they would hold much of the column, or a drawn cell is
/// NaN.
std::vector<ValueRange> GuessRanges(const Matrix& drawn, int64_t total,
                                    std::span<const std::pair<double, double>> ranks);

/// The cells of one rank that are in one of the ranges.
struct NarrowColumn {
  struct Part {
    ValueRange range;
    int64_t skipped = 0;  ///< Cells that are in no range, in front of this one.
    int64_t count = 0;    ///< Cells in this one.
  };
  std::vector<Part> parts;
  std::vector<double> cells;  ///< Part by part, in any order.
  bool has_nan = false;       ///< Among all cells.

  /// kCancelled when cancelled. Cost: reads the cells once; parallel.
  static Result<NarrowColumn> Of(std::span<const double> cells, std::span<const ValueRange> ranges,
                                 const std::atomic<bool>* cancelled);
  /// Everything but the cells, as a row; and back.
  Result<Matrix> ToRow() const;
  static NarrowColumn OfRow(const double* row, int64_t columns);
};

}  // namespace heddle::ops
