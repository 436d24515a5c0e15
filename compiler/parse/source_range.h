// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "core/source_position.h"

namespace heddle::compiler {

/// A character of a script file whose name the holder knows. Both count from 1; a column is one Unicode
/// character (a tab counts as one, so does a byte that is not UTF-8).
struct Place {
  int32_t line = 0;
  int32_t column = 0;

  auto operator<=>(const Place&) const = default;
};

/// Text from `begin` up to but not including `end`.
struct SourceRange {
  Place begin;
  Place end;

  SourcePosition Position(const std::string& file) const { return {file, begin.line, begin.column}; }
  bool operator==(const SourceRange&) const = default;
};

}  // namespace heddle::compiler
