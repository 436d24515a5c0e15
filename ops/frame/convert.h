// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/values/frame.h"

// Cells of one type as cells of another.
namespace heddle::ops {

/// The number that a cell of text is: as Java reads it, 1 and 0 for TRUE and FALSE, infinity for inf and
/// infinity, NaN for nan, in any case; NaN for the empty text; nullopt for what is none.
std::optional<double> NumberInText(std::string_view text);

/// The integer that a text of digits is, with a sign and nothing but zeros behind a point perhaps; nullopt
/// for another text, and for what 64 bits do not hold.
std::optional<int64_t> IntegerInText(std::string_view text);

/// True if a column of FP32 keeps this number: a float is no other number, and neither is its own text, which
/// is that of such a cell wherever it is shown or written.
bool IsSingle(double x);

/// Appends the text of a cell that is not missing: as scalars have it, but for "true" and "false".
void AppendCell(const Column& column, int64_t row, std::string* out);

/// The first type that holds the cells of both, in the order BOOLEAN, INT32, INT64, FP32, FP64, CHARACTER,
/// STRING.
ColumnType WiderOf(ColumnType a, ColumnType b);

/// The cells of a column as cells of `type`; the column itself where it has that type. Texts of booleans are
/// "true" and "false"; integers keep the whole part of a number, FP32 rounds it. Missing cells stay missing,
/// but for texts that become numbers or booleans: there a missing or empty one is missing only where
/// `may_miss`, else 0 or FALSE. kFailedPrecondition for a cell that is none of `type`: a text that is no
/// number, NaN or too large a number as an integer, a number but 0 and 1 as a boolean; kResourceExhausted.
Result<Column> Converted(const Column& column, ColumnType type, bool may_miss = false);

}  // namespace heddle::ops
