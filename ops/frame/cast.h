// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "core/values/frame.h"
#include "core/values/matrix.h"

// Frames from matrices and back (language reference 2.3).
namespace heddle::ops {

/// Columns C1 to Cn. The type of each grows from cell to cell until it holds it: BOOLEAN (0 and 1), INT32,
/// INT64 (whole numbers), FP32 (the shortest text that names the float names the double, too: 0.1, NaN),
/// FP64.
Result<Frame> FrameOf(const Matrix& matrix);
/// The same in steps, for columns whose rows are in several places. For each column the first type of
/// BOOLEAN, INT32 and INT64 that holds all cells, FP32 where none does; the widest of all parts is that of
/// the whole column.
std::vector<ColumnType> WholeNumberTypes(const Matrix& dense);
ColumnType WiderNumberType(ColumnType a, ColumnType b);
/// For each column whose type is FP32 whether that holds all cells: else the column is one of FP64.
std::vector<char> AreSingles(const Matrix& dense, std::span<const ColumnType> types);
/// The columns as those of types that hold their cells.
Result<Frame> FrameOf(const Matrix& dense, std::span<const ColumnType> types);

/// A frame of one cell, of the scalar's type.
Result<Frame> FrameOf(const Scalar& scalar);
ColumnType ColumnTypeOf(ValueType type);  ///< kString, where the type is not known.

/// The cells as doubles: booleans are 0 and 1; of strings the number they write, 0 and 1 for FALSE and TRUE
/// in any case, and NaN where there is nothing. kFailedPrecondition for other texts, naming the first of
/// them.
Result<Matrix> MatrixOf(const Frame& frame);

}  // namespace heddle::ops
