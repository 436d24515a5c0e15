// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace heddle::ops {

/// A date and a time of day, in UTC. Fields may be out of their ranges, where Java reads leniently: the 13th
/// month is January of the next year.
struct CivilTime {
  int64_t year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0, millisecond = 0;
};

/// Milliseconds since 1970, as java.util.GregorianCalendar counts: days before 15 October 1582 are Julian.
int64_t MillisecondsOf(const CivilTime& time);
CivilTime CivilTimeOf(int64_t milliseconds);
/// The days of a month, 1 to 12.
int64_t DaysOf(int64_t year, int64_t month);

/// How a date is written, as java.text.SimpleDateFormat takes it.
///
/// Knows:   y M d H k K h m s S E a, names in English, 'quoted' text and characters that are no letters.
/// Reads:   as Java does, leniently, and what stands behind the date does not count. A year of two digits
///          lies between 1946 and 2045 (in Java within 80 years before today and 20 after).
class JavaDateFormat {
 public:
  /// kFailedPrecondition for letters that it does not know.
  static Result<JavaDateFormat> Parse(std::u16string_view pattern);

  /// kFailedPrecondition for a text that is not of this form.
  Result<int64_t> Read(std::u16string_view text) const;
  std::u16string Write(int64_t milliseconds) const;

 private:
  struct Field {
    char letter = 0;      ///< 0: a text that stands as it is.
    size_t count = 0;     ///< How often the letter stands there.
    std::u16string text;  ///< Of letter 0.
    bool IsNumber() const { return letter != 0 && letter != 'E' && letter != 'a' && !IsName(); }
    bool IsName() const { return letter == 'M' && count > 2; }
  };
  std::u16string pattern_;
  std::vector<Field> fields_;
};

}  // namespace heddle::ops
