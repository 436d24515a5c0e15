// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::compiler {

/// A token, or a comment between two of a line, of a formatted script.
struct LinePiece {
  std::string_view text;
  bool blank = false;        ///< Before it, where it does not begin the line.
  bool may_break = false;    ///< A line may begin here, with `indent`.
  bool begins_body = false;  ///< TokenLayout::begins_body.
  int32_t level = 0;         ///< Of places to break, those of the lowest level are the best.
  int32_t indent = 0;
};

/// A line of a formatted script.
struct FormattedLine {
  int32_t indent = 0;
  bool blank_before = false;  ///< An empty line before it.
  std::vector<LinePiece> pieces;
  std::string_view comment;  ///< At its end.
};

/// Breaks lines that are longer than `width` columns where they may be broken. The end of a broken line takes
/// up the line behind it where that goes on at the same place.
std::vector<FormattedLine> BreakLongLines(std::vector<FormattedLine> lines, int32_t width);

/// The text of the lines, each with `line_end` behind it. Comments at the ends of lines that follow each
/// other are aligned, if there is room in `width`.
std::string JoinLines(const std::vector<FormattedLine>& lines, int32_t width, std::string_view line_end);

}  // namespace heddle::compiler
