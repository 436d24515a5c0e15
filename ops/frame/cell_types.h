// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/values/frame.h"

// What a text could be a cell of.
namespace heddle::ops {

/// The first of BOOLEAN (0, 1, t, f, true, false), INT32, INT64, FP32, FP64, CHARACTER (one letter) and
/// STRING, from `least` on, that a cell of this text fits; nullopt for the empty text. FP32 fits a number
/// that a float is (IsSingle).
std::optional<ColumnType> TypeOfText(std::string_view text, ColumnType least = ColumnType::kBoolean);

/// The text as the checks of types see it: without blanks around it and quotation marks, in small letters.
std::string Plain(std::string_view text);

/// detectSchema: what all cells of the column fit, STRING for a column without any.
ColumnType DetectedType(const Frame& frame, int64_t column);

/// Its name in a schema: with the mark "·n" where texts of another type than STRING leave cells empty.
std::string NameInSchema(const Frame& frame, int64_t column);

/// A name of a type in a schema as it is, and whether it had that mark.
struct TypeName {
  std::string name;
  bool may_be_empty = false;
};
TypeName TypeInSchema(const Frame& schema, int64_t column);

}  // namespace heddle::ops
