// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ops/io/formats/file_format.h"

// What csv files consist of. A field that begins with a double quote, blanks before it aside, is quoted: it
// ends at the first separator or line end behind the next quote, and of two quotes inside it has one. A quote
// elsewhere is a character like any other. (RFC 4180, and as Python and pandas read what it leaves open.)
namespace heddle::ops {

/// Where the quote is that closes a field, looked for from `at` on, behind the one that opens it; npos where
/// nothing closes it.
size_t FindClosingQuote(std::string_view text, size_t at);

/// The fields of a record, one after the other, without blanks around them; quoted ones with their quotes.
class FieldCutter {
 public:
  /// `record` as LineBody() gives it.
  FieldCutter(std::string_view record, const ReadOptions& options)
      : rest_(record), separator_(options.separator), any_blanks_(options.any_blanks) {}
  bool Next(std::string_view* field);

 private:
  std::string_view rest_;
  const std::string_view separator_;
  const bool any_blanks_;
  bool more_ = true;
};

/// Of a field as FieldCutter gives it.
inline bool IsQuoted(std::string_view field) { return !field.empty() && field.front() == '"'; }
/// What is in a quoted field, blanks at its ends as well. In `room` where it does not stand like that in the
/// file.
std::string_view WithoutQuotes(std::string_view field, std::string* room);
/// What is in any field.
inline std::string_view ContentOf(std::string_view field, std::string* room) {
  return IsQuoted(field) ? WithoutQuotes(field, room) : field;
}
/// Whether a text must be quoted to be read as this text: others would divide it, trim it, or take it for a
/// number, a boolean or a missing cell.
bool NeedsQuotes(std::string_view text, std::string_view separator);
/// Separators that are found by looking at the first line of a table, in this order. Where it has none of
/// them, blanks separate.
inline constexpr char kGuessedSeparators[] = {',', ';', '\t'};
/// Whether a text of the first line must be quoted because of what it says of the separator of `columns`
/// columns.
bool MisleadsGuess(std::string_view text, std::string_view separator, int64_t columns);
/// TRUE, FALSE and their other spellings that programs write.
bool IsBooleanWord(std::string_view text);

/// The line without carriage returns at its end, and without blanks around it where runs of them separate.
std::string_view LineBody(std::string_view line, const ReadOptions& options);
int64_t CountFields(std::string_view line, const ReadOptions& options);
/// Nothing but blanks, and no separator among them.
bool IsBlankLine(std::string_view line, const ReadOptions& options);

/// One of naStrings, as it stands there.
bool IsMissing(std::string_view text, const ReadOptions& options);

/// A number as Java reads it, or NaN, Inf or Infinity in any case and with any sign, as other programs write
/// them.
std::optional<double> ParseNumber(std::string_view text);
/// A cell of a matrix: a number, or 1 and 0 of truth values (IsBooleanWord), as pandas writes its dummies.
std::optional<double> ParseCell(std::string_view text);
/// Takes a number as most are written off the front. False, and nothing taken, where there is none or it
/// takes a closer look: ParseNumber() has the last word.
inline bool TakePlainNumber(const char** at, const char* end, double* value) {
  const auto [next, error] = std::from_chars(*at, end, *value);
  // from_chars knows more spellings of NaN and the infinities than DML.
  if (error != std::errc() || !std::isfinite(*value)) return false;
  *at = next;
  return true;
}
/// Takes a whole number without a sign off the front, of 18 digits at most. False where there is none, or a
/// longer one.
inline bool TakePlainInteger(const char** at, const char* end, int64_t* value) {
  constexpr int kMostDigits = 18;
  const char* next = *at;
  int64_t whole = 0;
  for (; next != end && *next >= '0' && *next <= '9'; ++next) {
    if (next - *at == kMostDigits) return false;
    whole = 10 * whole + (*next - '0');
  }
  if (next == *at) return false;
  *at = next;
  *value = whole;
  return true;
}
/// Also Fortran's exponents: 1.0D+03, 1.0-103.
std::optional<double> ParseFortranNumber(std::string_view text);

}  // namespace heddle::ops
