// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_date_format.h"

#include <array>
#include <optional>
#include <span>

#include "core/text/utf8.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

constexpr int64_t kMillisecondsOfDay = 86'400'000;
constexpr int64_t kFirstGregorianDay = -141'427;  // 15 October 1582, counted from 1970.
constexpr size_t kMostDigits = 9;                 // Of a field: its number stays far inside 64 bits.

constexpr std::array<std::u16string_view, 12> kMonths = {u"January",   u"February", u"March",    u"April",
                                                         u"May",       u"June",     u"July",     u"August",
                                                         u"September", u"October",  u"November", u"December"};
constexpr std::array<std::u16string_view, 7> kDays = {u"Thursday", u"Friday",  u"Saturday", u"Sunday",
                                                      u"Monday",   u"Tuesday", u"Wednesday"};  // From 1970.
constexpr std::array<std::u16string_view, 2> kHalves = {u"AM", u"PM"};

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

// Days from 1 March of year 0 to that day of a year that begins in March, without the leap days of centuries
// in the Julian calendar. Days since 1970 are 719468 less, Julian ones 719470.
int64_t DaysBefore(int64_t year, int64_t month, int64_t day, bool gregorian) {
  year += FloorDivide(month - 1, 12);
  month = month - 1 - 12 * FloorDivide(month - 1, 12);  // 0 to 11
  if (month < 2) --year;
  const int64_t of_year = (153 * ((month + 10) % 12) + 2) / 5 + day - 1;
  int64_t days = 365 * year + FloorDivide(year, 4) + of_year;
  if (gregorian) days += FloorDivide(year, 400) - FloorDivide(year, 100);
  return days - (gregorian ? 719'468 : 719'470);
}

int64_t DayOf(const CivilTime& time) {
  const int64_t day = DaysBefore(time.year, time.month, time.day, true);
  return day >= kFirstGregorianDay ? day : DaysBefore(time.year, time.month, time.day, false);
}

bool IsDigit(char16_t unit) { return unit >= u'0' && unit <= u'9'; }

bool StartsWithIgnoringCase(std::u16string_view text, std::u16string_view start) {
  if (text.size() < start.size()) return false;
  for (size_t i = 0; i < start.size(); ++i)
    if (LowerCase(text[i]) != LowerCase(start[i])) return false;
  return true;
}

// The index of the name that `text` begins with, whole or its first three letters; `length` is how long.
std::optional<size_t> FindName(std::u16string_view text, std::span<const std::u16string_view> names,
                               size_t* length) {
  for (const bool whole : {true, false})
    for (size_t i = 0; i < names.size(); ++i) {
      const std::u16string_view name = whole ? names[i] : names[i].substr(0, 3);
      if (!StartsWithIgnoringCase(text, name)) continue;
      *length = name.size();
      return i;
    }
  return std::nullopt;
}

void AppendNumber(int64_t number, size_t digits, std::u16string* out) {
  const std::string text = fmt::format("{}", number);
  if (text.size() < digits) out->append(digits - text.size(), u'0');
  out->append(text.begin(), text.end());
}

}  // namespace

int64_t MillisecondsOf(const CivilTime& time) {
  return DayOf(time) * kMillisecondsOfDay + ((time.hour * 60 + time.minute) * 60 + time.second) * 1000 +
         time.millisecond;
}

CivilTime CivilTimeOf(int64_t milliseconds) {
  const int64_t day = FloorDivide(milliseconds, kMillisecondsOfDay);
  int64_t rest = milliseconds - day * kMillisecondsOfDay;
  CivilTime time;
  // The first day of the year that is not behind it: guessed within a year, then found.
  time.year = 1970 + FloorDivide(day * 400, 146'097);
  const auto first_of_month = [&](int64_t year, int64_t month) {
    return DayOf({.year = year, .month = month, .day = 1});
  };
  while (first_of_month(time.year, 1) > day) --time.year;
  while (first_of_month(time.year + 1, 1) <= day) ++time.year;
  while (time.month < 12 && first_of_month(time.year, time.month + 1) <= day) ++time.month;
  time.day = 1 + day - first_of_month(time.year, time.month);
  // Ten days are missing behind 4 October 1582.
  if (time.year == 1582 && time.month == 10 && day >= kFirstGregorianDay) time.day += 10;
  time.hour = rest / 3'600'000;
  rest %= 3'600'000;
  time.minute = rest / 60'000;
  rest %= 60'000;
  time.second = rest / 1000;
  time.millisecond = rest % 1000;
  return time;
}

int64_t DaysOf(int64_t year, int64_t month) {
  return DayOf({.year = year, .month = month + 1, .day = 1}) -
         DayOf({.year = year, .month = month, .day = 1});
}

Result<JavaDateFormat> JavaDateFormat::Parse(std::u16string_view pattern) {
  JavaDateFormat format;
  format.pattern_ = pattern;
  const auto add_text = [&](char16_t unit) {
    if (format.fields_.empty() || format.fields_.back().letter != 0) format.fields_.emplace_back();
    format.fields_.back().text.push_back(unit);
  };
  for (size_t i = 0; i < pattern.size();) {
    const char16_t unit = pattern[i];
    if (unit == u'\'') {
      if (i + 1 < pattern.size() && pattern[i + 1] == u'\'') {
        add_text(unit);
        i += 2;
        continue;
      }
      const size_t end = pattern.find(u'\'', i + 1);
      if (end == pattern.npos)
        return FailedPrecondition("the form '{}' of dates has no second quote",
                                  ShownInLine(ToUtf8(pattern), 40));
      for (const char16_t quoted : pattern.substr(i + 1, end - i - 1)) add_text(quoted);
      i = end + 1;
      continue;
    }
    const bool is_letter = (unit >= u'a' && unit <= u'z') || (unit >= u'A' && unit <= u'Z');
    if (!is_letter) {
      add_text(unit);
      ++i;
      continue;
    }
    if (std::u16string_view(u"yMdHkKhmsSEa").find(unit) == std::u16string_view::npos)
      return FailedPrecondition("map() does not know the letter {} in the form '{}' of dates",
                                static_cast<char>(unit), ShownInLine(ToUtf8(pattern), 40));
    Field field{static_cast<char>(unit), 0, {}};
    for (; i < pattern.size() && pattern[i] == unit; ++i) ++field.count;
    format.fields_.push_back(std::move(field));
  }
  return format;
}

Result<int64_t> JavaDateFormat::Read(std::u16string_view text) const {
  const auto wrong = [&] {
    return FailedPrecondition("'{}' is not a date of the form '{}'", ShownInLine(ToUtf8(text), 40),
                              ShownInLine(ToUtf8(pattern_), 40));
  };
  CivilTime time;
  std::optional<int64_t> half;
  size_t at = 0;
  for (size_t k = 0; k < fields_.size(); ++k) {
    const Field& field = fields_[k];
    if (field.letter == 0) {
      if (text.substr(std::min(at, text.size()), field.text.size()) != field.text) return wrong();
      at += field.text.size();
      continue;
    }
    while (at < text.size() && (text[at] == u' ' || text[at] == u'\t')) ++at;
    if (at >= text.size()) return wrong();
    size_t length = 0;
    if (!field.IsNumber()) {
      const bool is_month = field.letter == 'M';
      const auto names = is_month              ? std::span<const std::u16string_view>(kMonths)
                         : field.letter == 'a' ? std::span<const std::u16string_view>(kHalves)
                                               : std::span<const std::u16string_view>(kDays);
      const std::optional<size_t> name = FindName(text.substr(at), names, &length);
      if (name) {
        at += length;
        if (is_month) time.month = static_cast<int64_t>(*name) + 1;
        if (field.letter == 'a') half = static_cast<int64_t>(*name);
        continue;
      }
      return wrong();
    }
    // Digits that follow each other without anything between them are shared out by the letters.
    const bool shares = k + 1 < fields_.size() && fields_[k + 1].IsNumber();
    int64_t number = 0;
    while (at + length < text.size() && IsDigit(text[at + length]) && length < kMostDigits &&
           (!shares || length < field.count))
      number = 10 * number + (text[at + length++] - u'0');
    if (length == 0 || (shares && length < field.count)) return wrong();
    at += length;
    switch (field.letter) {
      case 'y':
        if (field.count <= 2 && length == 2) number += number < 46 ? 2000 : 1900;
        time.year = number;
        break;
      case 'M': time.month = number; break;
      case 'd': time.day = number; break;
      case 'H':
      case 'K': time.hour = number; break;
      case 'k': time.hour = number == 24 ? 0 : number; break;
      case 'h': time.hour = number == 12 ? 0 : number; break;
      case 'm': time.minute = number; break;
      case 's': time.second = number; break;
      default: time.millisecond = number;
    }
  }
  if (half) time.hour += 12 * *half;
  return MillisecondsOf(time);
}

std::u16string JavaDateFormat::Write(int64_t milliseconds) const {
  const CivilTime time = CivilTimeOf(milliseconds);
  const int64_t day = FloorDivide(milliseconds, kMillisecondsOfDay);
  std::u16string out;
  const auto append_name = [&](std::u16string_view name, bool whole) {
    out += whole ? name : name.substr(0, 3);
  };
  for (const Field& field : fields_) {
    switch (field.letter) {
      case 0: out += field.text; break;
      case 'y': AppendNumber(field.count == 2 ? time.year % 100 : time.year, field.count, &out); break;
      case 'M':
        if (field.IsName())
          append_name(kMonths[static_cast<size_t>(time.month - 1)], field.count > 3);
        else
          AppendNumber(time.month, field.count, &out);
        break;
      case 'E':
        append_name(kDays[static_cast<size_t>(day - 7 * FloorDivide(day, 7))], field.count > 3);
        break;
      case 'a': out += kHalves[time.hour < 12 ? 0 : 1]; break;
      case 'd': AppendNumber(time.day, field.count, &out); break;
      case 'H': AppendNumber(time.hour, field.count, &out); break;
      case 'k': AppendNumber(time.hour == 0 ? 24 : time.hour, field.count, &out); break;
      case 'K': AppendNumber(time.hour % 12, field.count, &out); break;
      case 'h': AppendNumber(time.hour % 12 == 0 ? 12 : time.hour % 12, field.count, &out); break;
      case 'm': AppendNumber(time.minute, field.count, &out); break;
      case 's': AppendNumber(time.second, field.count, &out); break;
      default: AppendNumber(time.millisecond, field.count, &out);
    }
  }
  return out;
}

}  // namespace heddle::ops
