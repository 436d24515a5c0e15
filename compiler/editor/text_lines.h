// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/parse/source_range.h"

namespace heddle::compiler {

/// The lines of a text, and its places in the ways in which compiler and editors count. What lies behind the
/// end of a line or of the text counts as that end. Does not own the text.
class TextLines {
 public:
  /// What an editor counts columns in.
  enum class Units : uint8_t { kUtf8, kUtf16 };
  /// Both from 0; the column in units.
  struct EditorPlace {
    int64_t line = 0;
    int64_t column = 0;

    bool operator==(const EditorPlace&) const = default;
  };

  explicit TextLines(std::string_view text);

  size_t OffsetOf(const Place& place) const;
  size_t OffsetOf(const EditorPlace& place, Units units) const;
  Place PlaceAt(size_t offset) const;
  EditorPlace EditorPlaceAt(size_t offset, Units units) const;
  EditorPlace EditorPlaceOf(const Place& place, Units units) const {
    return EditorPlaceAt(OffsetOf(place), units);
  }
  /// How many lines there are; a line end at the end of the text begins one more.
  size_t size() const { return begins_.size(); }
  /// Without its line end; counts from 0.
  std::string_view Line(size_t line) const;

 private:
  size_t LineOf(size_t offset) const;

  std::string_view text_;
  std::vector<size_t> begins_;  // offsets
};

}  // namespace heddle::compiler
