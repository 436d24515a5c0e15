// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/values/frame.h"
#include "core/values/matrix.h"

// Frames from matrices and back (language reference 2.3).
namespace heddle::ops {

/// Columns C1 to Cn. The type of each grows from cell to cell until it holds it: BOOLEAN (0 and 1), INT32,
/// INT64 (whole numbers), FP32 (the shortest text that names the float names the double, too: 0.1, NaN),
/// FP64.
Result<Frame> FrameOf(const Matrix& matrix);

/// A frame of one cell, of the scalar's type.
Result<Frame> FrameOf(const Scalar& scalar);
ColumnType ColumnTypeOf(ValueType type);  ///< kString, where the type is not known.

/// The cells as doubles: booleans are 0 and 1; of strings the number they write, 0 and 1 for FALSE and TRUE
/// in any case, and NaN where there is nothing. kFailedPrecondition for other texts, naming the first of
/// them.
Result<Matrix> MatrixOf(const Frame& frame);

}  // namespace heddle::ops
