// SPDX-License-Identifier: Apache-2.0
#include "compiler/editor/format_lines.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/text/utf8.h"

namespace heddle::compiler {
namespace {

constexpr size_t kBlanksBeforeComment = 2;

int32_t Characters(std::string_view text) {
  int32_t characters = 0;
  for (size_t at = 0; at < text.size(); ++characters) at += std::max<size_t>(1, Utf8Length(text, at));
  return characters;
}

// The column behind a text that begins at `column`; a string or comment may have lines of its own.
int32_t ColumnBehind(int32_t column, std::string_view text) {
  const size_t line_end = text.rfind('\n');
  return line_end == std::string_view::npos ? column + Characters(text)
                                            : Characters(text.substr(line_end + 1));
}

// The columns behind each piece.
std::vector<int32_t> ColumnsOf(const FormattedLine& line) {
  std::vector<int32_t> columns;
  int32_t column = line.indent;
  for (const LinePiece& piece : line.pieces) {
    column = ColumnBehind(column + (piece.blank && !columns.empty() ? 1 : 0), piece.text);
    columns.push_back(column);
  }
  return columns;
}

int32_t WidthOf(const FormattedLine& line) {
  const std::vector<int32_t> columns = ColumnsOf(line);
  return columns.empty() ? 0 : columns.back();
}

// The piece that is to begin the next line; 0 where the line stays as it is.
size_t PlaceToBreak(const FormattedLine& line, int32_t width) {
  const std::vector<int32_t> columns = ColumnsOf(line);
  if (columns.empty() || *std::max_element(columns.begin(), columns.end()) <= width) return 0;
  for (size_t i = 1; i < line.pieces.size(); ++i)
    if (line.pieces[i].begins_body) return i;
  // The best place is in the second half of the line, so that lines are filled.
  const int32_t middle = line.indent + (width - line.indent) / 2;
  size_t best = 0, first_beyond = 0;
  int32_t best_level = std::numeric_limits<int32_t>::max();
  bool best_is_behind_middle = false;
  for (size_t i = 1; i < line.pieces.size(); ++i) {
    if (!line.pieces[i].may_break) continue;
    if (columns[i - 1] > width) {
      if (first_beyond == 0) first_beyond = i;
      continue;
    }
    const bool is_behind_middle = columns[i - 1] >= middle;
    if (best_is_behind_middle && !is_behind_middle) continue;
    if (is_behind_middle == best_is_behind_middle && line.pieces[i].level > best_level) continue;
    best = i;
    best_level = line.pieces[i].level;
    best_is_behind_middle = is_behind_middle;
  }
  return best != 0 ? best : first_beyond;
}

void AddBroken(FormattedLine line, int32_t width, std::vector<FormattedLine>* broken) {
  while (const size_t place = PlaceToBreak(line, width)) {
    FormattedLine rest;
    rest.indent = line.pieces[place].indent;
    rest.comment = std::exchange(line.comment, {});
    const auto begin = line.pieces.begin() + static_cast<std::ptrdiff_t>(place);
    const bool is_body = begin->begins_body;
    rest.pieces.assign(begin, line.pieces.end());
    line.pieces.erase(begin, line.pieces.end());
    std::swap(line, rest);
    // The head of an `if` or loop may be too long itself.
    if (is_body) {
      AddBroken(std::move(rest), width, broken);
    } else {
      broken->push_back(std::move(rest));
    }
  }
  broken->push_back(std::move(line));
}

// Whether `next`, which was a line of its own before, goes on at the same place as the end of a line that was
// broken: then both are filled as one, so that no short piece is left between two lines.
bool GoesOnAlike(const FormattedLine& end, const FormattedLine& next) {
  if (!end.comment.empty() || end.pieces[0].begins_body) return false;
  if (next.blank_before || next.pieces.empty()) return false;
  const LinePiece& first = next.pieces[0];
  return first.may_break && first.text != "return" && first.level == end.pieces[0].level;
}

FormattedLine Join(FormattedLine line, const FormattedLine& next) {
  line.pieces.insert(line.pieces.end(), next.pieces.begin(), next.pieces.end());
  line.comment = next.comment;
  return line;
}

// Where comments at the ends of lines begin, by line; 0 where there is none.
std::vector<int32_t> CommentColumns(const std::vector<FormattedLine>& lines, int32_t width) {
  std::vector<int32_t> columns(lines.size());
  for (size_t begin = 0; begin < lines.size();) {
    size_t end = begin;
    int32_t code = 0, comment = 0;
    while (end < lines.size() && !lines[end].comment.empty() && (end == begin || !lines[end].blank_before)) {
      code = std::max(code, WidthOf(lines[end]));
      comment = std::max(comment, Characters(lines[end].comment));
      ++end;
    }
    const auto blanks = static_cast<int32_t>(kBlanksBeforeComment);
    const bool fits = code + blanks + comment <= width;
    for (size_t i = begin; i < end; ++i) columns[i] = (fits ? code : WidthOf(lines[i])) + blanks;
    begin = std::max(end, begin + 1);
  }
  return columns;
}

}  // namespace

std::vector<FormattedLine> BreakLongLines(std::vector<FormattedLine> lines, int32_t width) {
  std::vector<FormattedLine> broken;
  for (size_t i = 0; i < lines.size(); ++i) {
    FormattedLine line = std::move(lines[i]);
    for (;;) {
      const size_t count = broken.size();
      AddBroken(std::move(line), width, &broken);
      const bool is_broken = broken.size() > count + 1;
      if (!is_broken || i + 1 == lines.size() || !GoesOnAlike(broken.back(), lines[i + 1])) break;
      line = Join(std::move(broken.back()), lines[++i]);
      broken.pop_back();
    }
  }
  return broken;
}

std::string JoinLines(const std::vector<FormattedLine>& lines, int32_t width, std::string_view line_end) {
  const std::vector<int32_t> comment_columns = CommentColumns(lines, width);
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    const FormattedLine& line = lines[i];
    if (line.blank_before) text += line_end;
    text.append(static_cast<size_t>(line.indent), ' ');
    for (const LinePiece& piece : line.pieces) {
      if (piece.blank && &piece != line.pieces.data()) text += ' ';
      text += piece.text;
    }
    if (!line.comment.empty()) {
      text.append(static_cast<size_t>(comment_columns[i] - WidthOf(line)), ' ');
      text += line.comment;
    }
    text += line_end;
  }
  return text;
}

}  // namespace heddle::compiler
