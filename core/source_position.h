// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace heddle {

/// A place in a script: what a user sees as "file:line:column". Line 0 means "no place known".
struct SourcePosition {
  std::string file;
  int32_t line = 0;
  int32_t column = 0;

  bool IsKnown() const { return line > 0; }
  std::string ToString() const;
  bool operator==(const SourcePosition&) const = default;
};

}  // namespace heddle
