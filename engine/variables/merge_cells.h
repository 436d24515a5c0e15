// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "core/values/frame.h"
#include "core/values/matrix.h"

namespace heddle::engine {

/// The cells of `last`, but where one of the others differs from `before` (other bytes: NaN equals NaN, -0.0
/// is not +0.0) its cell: what `before` became when each of the matrices stands for changes of other cells of
/// it. In the storage of `last`, which is taken over where no copy of it is held elsewhere.
///
/// Errors:  kInternal when shapes or element types differ; kResourceExhausted.
/// Cost:    reads every cell of `before` and of each of the others once.
Result<Matrix> MergeCells(const Matrix& before, Matrix last, std::span<const Matrix> others);
/// The same of frames, which have the same column types (else kInternal); a missing cell is like another
/// missing one only. Columns that none of the others changed are those of `last`. At most 255 others.
Result<Frame> MergeCells(const Frame& before, const Frame& last, std::span<const Frame> others);

/// The cells of `after` that differ from those of `before` by their bytes, to be sent: a row each, its place
/// (row by row, from 0) and its value; of binary32 the bits of the value as a number. Errors as above.
Result<Matrix> ChangedCells(const Matrix& before, const Matrix& after);
/// A dense copy of rows [begin, end) of `before` with those of these cells changed that are in them.
/// kInternal for places that `before` does not have.
Result<Matrix> WithCells(const Matrix& before, int64_t begin, int64_t end, const Matrix& changes);

/// Cells of one column of a frame that are no longer what they were.
struct ColumnChange {
  int64_t column = 0;
  Matrix rows;   ///< n x 1, from 0, ascending: where they are,
  Column cells;  ///< and what they are.
};
/// The cells of `after` that differ from those of `before`, a change for each column that has some.
Result<std::vector<ColumnChange>> ChangedCells(const Frame& before, const Frame& after);
/// `before` with those cells changed; columns without a change share its memory. kInternal for places and
/// types that `before` does not have.
Result<Frame> WithCells(const Frame& before, std::span<const ColumnChange> changes);

}  // namespace heddle::engine
