// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/values/frame.h"
#include "core/values/matrix.h"

namespace heddle::ops::reference {

/// as.frame(X): the type of a column is the first of BOOLEAN, INT32, INT64, FP32 and FP64, and then grows
/// from cell to cell.
Frame AsFrame(const Matrix& x);
/// colnames(F) and typeof(F): a row of strings.
Frame ColumnNames(const Frame& frame);
Frame TypesOfColumns(const Frame& frame);
/// detectSchema(F), applySchema(F, S), dropInvalidType(F, S), dropInvalidLength(F, L), valueSwap(F, S): of
/// columns of strings, whose texts are short.
Frame DetectSchema(const Frame& frame);
Frame ApplySchema(const Frame& frame, const Frame& schema);
Frame DropInvalidType(const Frame& frame, const Frame& schema);
Frame DropInvalidLength(const Frame& frame, const Matrix& lengths);
Frame ValueSwap(const Frame& frame, const Frame& schema);
/// frame(data, rows, cols) of strings, freplicate(F, R), and F comparison G of columns of strings.
Frame FilledFrame(const std::string& data, int64_t rows, int64_t columns);
Frame ReplaceTexts(const Frame& frame, const std::string& pattern, const std::string& replacement);
Frame RemoveEmptyRows(const Frame& frame);
Frame Replicate(const Frame& frame, const Frame& row);
Frame Compare(const Frame& a, const Frame& b, const std::string& comparison);
/// map(F, expression) for the expressions of its tests: x -> x.length(), x -> x.toLowerCase() and
/// x -> x.replace("a", "b"), of ASCII.
Frame Map(const Frame& frame, const std::string& expression);
/// as.matrix(F).
Matrix AsMatrix(const Frame& frame);

}  // namespace heddle::ops::reference
