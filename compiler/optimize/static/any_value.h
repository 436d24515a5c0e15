// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "compiler/optimize/infer.h"

namespace heddle::compiler {

/// Types of values that a script may get from outside.
inline constexpr DataType kAnyTypes[] = {DataType::kUnknown, DataType::kScalar, DataType::kMatrix,
                                         DataType::kFrame, DataType::kList};

/// A variable that no script can name, and that has any value of a type. Programs that are only checked read
/// it where a value comes from outside.
inline std::string NameOfAnyValue(DataType type) { return "%any." + std::string(Name(type)); }

/// What is known of it.
inline LiveIn AnyValueOf(DataType type) {
  LiveIn known;
  if (type != DataType::kUnknown) known.info = ValueInfo::OfDeclared(type, ValueType::kUnknown);
  return known;
}

}  // namespace heddle::compiler
