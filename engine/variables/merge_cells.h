// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "core/values/frame.h"
#include "core/values/matrix.h"

// Iterations of a parfor each change some cells of a matrix or frame, no two of them the same cell. Every
// iteration, or rank, begins with the value of before the loop and ends with one of its own; these functions
// make one value of all of them.
namespace heddle::engine {

/// The cells of `last`, but for those in which one of the others differs from `before`: these are the
/// other's. Cells differ when their bytes do: NaN equals NaN, and -0.0 is not +0.0. The result has the
/// storage of `last`, and its memory where nobody else holds it.
///
/// Errors:  kInternal when shapes or element types differ; kResourceExhausted.
/// Cost:    reads every cell of `before` and of each of the others once.
Result<Matrix> MergeCells(const Matrix& before, Matrix last, std::span<const Matrix> others);
/// The same of frames, which have the same column types (else kInternal). A missing cell equals missing cells
/// only. Columns that none of the others changed are those of `last`. At most 255 others.
Result<Frame> MergeCells(const Frame& before, const Frame& last, std::span<const Frame> others);

/// The cells of `after` that differ from those of `before`, to be sent to another rank: a row each, of the
/// cell's number (row by row, from 0) and its value. A binary32 value is sent as the number that its bits
/// are, so that a NaN stays the same NaN. Errors as above.
Result<Matrix> ChangedCells(const Matrix& before, const Matrix& after);
/// A dense copy of rows [begin, end) of `before`, with the changes that concern them. kInternal for cells
/// that `before` does not have.
Result<Matrix> WithCells(const Matrix& before, int64_t begin, int64_t end, const Matrix& changes);

/// The changed cells of one column of a frame.
struct ColumnChange {
  int64_t column = 0;
  Matrix rows;   ///< n x 1: their rows, from 0, ascending.
  Column cells;  ///< Their new values.
};
/// The cells of `after` that differ from those of `before`, a change for each column that has some.
Result<std::vector<ColumnChange>> ChangedCells(const Frame& before, const Frame& after);
/// `before` with those changes; columns without a change share its memory. kInternal for cells and types that
/// `before` does not have.
Result<Frame> WithCells(const Frame& before, std::span<const ColumnChange> changes);

}  // namespace heddle::engine
