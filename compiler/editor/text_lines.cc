// SPDX-License-Identifier: Apache-2.0
#include "compiler/editor/text_lines.h"

#include <algorithm>

#include "core/text/utf8.h"

namespace heddle::compiler {
namespace {

// Bytes of the character at an offset; a byte that is not UTF-8 is one of its own.
size_t BytesAt(std::string_view text, size_t offset) {
  return static_cast<unsigned char>(text[offset]) < 0x80 ? 1 : std::max<size_t>(1, Utf8Length(text, offset));
}

// Characters beyond U+FFFF, which have four bytes, are two units of UTF-16.
int64_t UnitsOf(size_t bytes, TextLines::Units units) {
  if (units == TextLines::Units::kUtf8) return static_cast<int64_t>(bytes);
  return bytes == 4 ? 2 : 1;
}

}  // namespace

TextLines::TextLines(std::string_view text) : text_(text), begins_{0} {
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
    begins_.push_back(at + 1);
}

std::string_view TextLines::Line(size_t line) const {
  const size_t begin = begins_[line];
  std::string_view text =
      text_.substr(begin, (line + 1 < begins_.size() ? begins_[line + 1] - 1 : text_.size()) - begin);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

size_t TextLines::LineOf(size_t offset) const {
  return static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), offset) - begins_.begin()) - 1;
}

size_t TextLines::OffsetOf(const Place& place) const {
  if (place.line < 1) return 0;
  if (static_cast<size_t>(place.line) > begins_.size()) return text_.size();
  const auto index = static_cast<size_t>(place.line - 1);
  const std::string_view line = Line(index);
  size_t at = 0;
  for (int32_t column = 1; column < place.column && at < line.size(); ++column) at += BytesAt(line, at);
  return begins_[index] + at;
}

size_t TextLines::OffsetOf(const EditorPlace& place, Units units) const {
  if (place.line < 0) return 0;
  if (static_cast<size_t>(place.line) >= begins_.size()) return text_.size();
  const std::string_view line = Line(static_cast<size_t>(place.line));
  size_t at = 0;
  for (int64_t column = 0; at < line.size();) {
    const size_t bytes = BytesAt(line, at);
    column += UnitsOf(bytes, units);
    if (column > place.column) break;  // in the middle of a character: before it
    at += bytes;
  }
  return begins_[static_cast<size_t>(place.line)] + at;
}

Place TextLines::PlaceAt(size_t offset) const {
  const size_t line = LineOf(std::min(offset, text_.size()));
  Place place{static_cast<int32_t>(line) + 1, 1};
  for (size_t at = begins_[line]; at < std::min(offset, text_.size()); at += BytesAt(text_, at))
    ++place.column;
  return place;
}

TextLines::EditorPlace TextLines::EditorPlaceAt(size_t offset, Units units) const {
  const size_t line = LineOf(std::min(offset, text_.size()));
  EditorPlace place{static_cast<int64_t>(line), 0};
  for (size_t at = begins_[line]; at < std::min(offset, text_.size());) {
    const size_t bytes = BytesAt(text_, at);
    place.column += UnitsOf(bytes, units);
    at += bytes;
  }
  return place;
}

}  // namespace heddle::compiler
