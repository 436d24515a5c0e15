// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/frame.h"
#include "core/matrix.h"

namespace heddle::ops::reference {

/// as.frame(X): the type of a column is the first of BOOLEAN, INT32, INT64, FP32 and FP64, and then grows
/// from cell to cell.
Frame AsFrame(const Matrix& x);
/// colnames(F) and typeof(F): a row of strings.
Frame ColumnNames(const Frame& frame);
Frame TypesOfColumns(const Frame& frame);
/// as.matrix(F).
Matrix AsMatrix(const Frame& frame);

}  // namespace heddle::ops::reference
