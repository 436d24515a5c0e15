// SPDX-License-Identifier: Apache-2.0
#include "ops/formats/fields.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <string>

#include "core/text/double_text.h"
#include "ops/formats/lines.h"

namespace heddle::ops {
namespace {

bool EqualsIgnoringCase(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == static_cast<unsigned char>(b);
  });
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool FieldCutter::Next(std::string_view* field) {
  if (!more_) return false;
  if (any_blanks_) {
    const auto end = std::find_if(rest_.begin(), rest_.end(), IsBlank);
    *field = rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
    rest_ = Trim(rest_.substr(field->size()));
    more_ = !rest_.empty();
    return true;
  }
  const size_t end = rest_.find(separator_);
  *field = Trim(rest_.substr(0, end));
  more_ = end != std::string_view::npos;
  if (more_) rest_.remove_prefix(end + separator_.size());
  return true;
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

std::string_view Unquote(std::string_view field) {
  if (field.size() < 2 || field.front() != '"' || field.back() != '"') return field;
  return Trim(field.substr(1, field.size() - 2));
}

bool IsMissing(std::string_view field, const ReadOptions& options) {
  const auto given = [&](std::string_view text) {
    return std::find(options.missing_texts.begin(), options.missing_texts.end(), text) !=
           options.missing_texts.end();
  };
  return given(field) || given(Unquote(field));
}

std::optional<double> ParseNumber(std::string_view text) {
  if (const std::optional<double> value = ParseDouble(text)) return value;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (EqualsIgnoringCase(text, "nan")) return std::numeric_limits<double>::quiet_NaN();
  if (!EqualsIgnoringCase(text, "inf") && !EqualsIgnoringCase(text, "infinity")) return std::nullopt;
  return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
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
