// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ops/formats/file_format.h"

// What csv files consist of.
namespace heddle::ops {

/// The fields of a line, one after the other, without blanks around them.
class FieldCutter {
 public:
  /// `line` as LineBody() gives it.
  FieldCutter(std::string_view line, const ReadOptions& options)
      : rest_(line), separator_(options.separator), any_blanks_(options.any_blanks) {}
  bool Next(std::string_view* field);

 private:
  std::string_view rest_;
  const std::string_view separator_;
  const bool any_blanks_;
  bool more_ = true;
};

/// The line without carriage returns at its end, and without blanks around it where runs of them separate.
std::string_view LineBody(std::string_view line, const ReadOptions& options);
int64_t CountFields(std::string_view line, const ReadOptions& options);
/// Nothing but blanks, and no separator among them.
bool IsBlankLine(std::string_view line, const ReadOptions& options);

/// Without the double quotes around it and blanks inside of them, if it has a pair.
std::string_view Unquote(std::string_view field);
/// One of naStrings, quoted or not.
bool IsMissing(std::string_view field, const ReadOptions& options);

/// A number as Java reads it, or NaN, Inf or Infinity in any case and with any sign, as other programs write
/// them.
std::optional<double> ParseNumber(std::string_view text);
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
