// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "ops/map/java_value.h"

namespace heddle::ops {

/// A token of the expression of map().
struct JavaToken {
  enum class Kind { kName, kLiteral, kSymbol, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;   ///< The name or the symbol; of a literal as it is written.
  JavaValue literal;  ///< Text, character or number; true and false are names.
  size_t at = 0;      ///< Character of the expression, from 1.
};

/// The tokens, kEnd last. kInvalidArgument for what starts none, with its place.
Result<std::vector<JavaToken>> LexJava(std::string_view expression);

}  // namespace heddle::ops
