// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/fields.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <string>

#include "core/text/double_text.h"
#include "ops/io/formats/lines.h"

namespace heddle::ops {
namespace {

bool EqualsIgnoringCase(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == static_cast<unsigned char>(b);
  });
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

size_t FindClosingQuote(std::string_view text, size_t at) {
  while (true) {
    const size_t quote = text.find('"', at);
    if (quote == std::string_view::npos || quote + 1 == text.size() || text[quote + 1] != '"') return quote;
    at = quote + 2;
  }
}

bool FieldCutter::Next(std::string_view* field) {
  if (!more_) return false;
  // Where the field may end: behind its quotes if it has some.
  size_t from = 0;
  if (!any_blanks_)
    while (from < rest_.size() && IsBlank(rest_[from]) && !rest_.substr(from).starts_with(separator_)) ++from;
  if (from < rest_.size() && rest_[from] == '"') {
    const size_t quote = FindClosingQuote(rest_, from + 1);
    from = quote == std::string_view::npos ? rest_.size() : quote + 1;
  }
  if (any_blanks_) {
    const auto end = std::find_if(rest_.begin() + static_cast<ptrdiff_t>(from), rest_.end(), IsBlank);
    *field = rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
    rest_ = Trim(rest_.substr(field->size()));
    more_ = !rest_.empty();
    return true;
  }
  const size_t end = rest_.find(separator_, from);
  *field = Trim(rest_.substr(0, end));
  more_ = end != std::string_view::npos;
  if (more_) rest_.remove_prefix(end + separator_.size());
  return true;
}

std::string_view WithoutQuotes(std::string_view field, std::string* room) {
  const size_t first = field.find('"', 1);
  if (first == field.size() - 1) return field.substr(1, first - 1);
  const size_t closing = first == std::string_view::npos ? first : FindClosingQuote(field, first);
  if (closing == std::string_view::npos) return field;
  room->clear();
  for (size_t i = 1; i < closing; ++i) {
    room->push_back(field[i]);
    if (field[i] == '"') ++i;
  }
  room->append(field.substr(closing + 1));
  return *room;
}

bool IsBooleanWord(std::string_view text) {
  for (const std::string_view word : {"TRUE", "FALSE", "true", "false", "True", "False"})
    if (text == word) return true;
  return false;
}

bool MisleadsGuess(std::string_view text, std::string_view separator, int64_t columns) {
  for (const char guessed : kGuessedSeparators) {
    if (columns > 1 && separator == std::string_view(&guessed, 1)) return false;
    if (text.find(guessed) != std::string_view::npos) return true;
  }
  return columns == 1 && text.find(' ') != std::string_view::npos;
}

bool NeedsQuotes(std::string_view text, std::string_view separator) {
  // Without quotes it would be a missing cell.
  if (text.empty() || text == "NA") return true;
  const auto is_visible = [](char c) { return static_cast<unsigned char>(c) > ' '; };
  if (!is_visible(text.front()) || !is_visible(text.back())) return true;
  const char separating = separator.size() == 1 ? separator[0] : '\n';
  for (const char c : text)
    if (c == separating || c == '"' || c == '\n' || c == '\r' || c == '\0') return true;
  // A separator of several characters may also begin in the text and end behind it.
  if (separator.size() > 1 && std::string(text).append(separator).find(separator) < text.size()) return true;
  switch (text.front()) {
    case '\xef':  // A byte order mark would be skipped at the beginning of a file.
      return text.starts_with("\xef\xbb\xbf");
    case '#':  // So begin lines that tell of the columns (ops/io/formats/csv/csv_frame.cc).
      return text.starts_with("#Meta\u00b7");
    case 't':
    case 'T':
    case 'f':
    case 'F': return IsBooleanWord(text);
    case '+':
    case '-':
    case '.':
    case 'n':
    case 'N':
    case 'i':
    case 'I': return ParseNumber(text).has_value();
    default: return IsDigit(text.front()) && ParseNumber(text).has_value();
  }
}

std::string_view LineBody(std::string_view line, const ReadOptions& options) {
  if (options.any_blanks) return Trim(line);
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

int64_t CountFields(std::string_view line, const ReadOptions& options) {
  int64_t fields = 0;
  FieldCutter cutter(line, options);
  for (std::string_view field; cutter.Next(&field);) ++fields;
  return fields;
}

bool IsBlankLine(std::string_view line, const ReadOptions& options) {
  return Trim(line).empty() && (options.any_blanks || line.find(options.separator) == std::string_view::npos);
}

bool IsMissing(std::string_view text, const ReadOptions& options) {
  return std::find(options.missing_texts.begin(), options.missing_texts.end(), text) !=
         options.missing_texts.end();
}

std::optional<double> ParseNumber(std::string_view text) {
  if (const std::optional<double> value = ParseDouble(text)) return value;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (EqualsIgnoringCase(text, "nan")) return std::numeric_limits<double>::quiet_NaN();
  if (!EqualsIgnoringCase(text, "inf") && !EqualsIgnoringCase(text, "infinity")) return std::nullopt;
  return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

std::optional<double> ParseCell(std::string_view text) {
  if (const std::optional<double> number = ParseNumber(text)) return number;
  if (!IsBooleanWord(text)) return std::nullopt;
  return text[0] == 't' || text[0] == 'T' ? 1 : 0;
}

std::optional<double> ParseFortranNumber(std::string_view text) {
  if (const std::optional<double> value = ParseNumber(text)) return value;
  constexpr size_t kLongest = 100;
  if (text.empty() || text.size() > kLongest || text.find_first_of("eExX") != std::string_view::npos)
    return std::nullopt;
  std::string other(text);
  if (const size_t letter = other.find_first_of("dDqQ"); letter != std::string::npos) {
    other[letter] = 'e';
  } else {
    // An exponent of three digits leaves no room for its letter.
    const size_t sign = other.find_last_of("+-");
    if (sign == std::string::npos || sign == 0 || !(IsDigit(other[sign - 1]) || other[sign - 1] == '.'))
      return std::nullopt;
    other.insert(sign, 1, 'e');
  }
  // Behind the exponent stands nothing: Java's d and f would.
  return IsDigit(other.back()) ? ParseDouble(other) : std::nullopt;
}

}  // namespace heddle::ops
