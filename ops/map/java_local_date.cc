// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_local_date.h"

#include <algorithm>
#include <array>

#include "ops/map/java_method_table.h"
#include "ops/text/java_text.h"

// Dates of java.time: LocalDate, Period, DayOfWeek, Month and ChronoUnit.
namespace heddle::ops {
namespace {

using enum JavaType;

constexpr int32_t kMostYear = 999'999'999;
constexpr int64_t kDaysOf400Years = 146'097;
constexpr int64_t kDaysBefore1970 = 719'468;  // From the 1st of March of the year 0.

constexpr std::array<std::u16string_view, 7> kDays = {u"MONDAY", u"TUESDAY",  u"WEDNESDAY", u"THURSDAY",
                                                      u"FRIDAY", u"SATURDAY", u"SUNDAY"};
constexpr std::array<std::u16string_view, 12> kMonths = {u"JANUARY",   u"FEBRUARY", u"MARCH",    u"APRIL",
                                                         u"MAY",       u"JUNE",     u"JULY",     u"AUGUST",
                                                         u"SEPTEMBER", u"OCTOBER",  u"NOVEMBER", u"DECEMBER"};
constexpr std::array<std::u16string_view, 6> kUnits = {u"Days",  u"Weeks",   u"Months",
                                                       u"Years", u"Decades", u"Centuries"};

bool IsLeap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }
int32_t LengthOfMonth(int64_t year, int32_t month) {
  if (month == 2) return IsLeap(year) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}
int32_t DayOfYear(const JavaDate& date) {
  int32_t day = date.day;
  for (int32_t month = 1; month < date.month; ++month) day += LengthOfMonth(date.year, month);
  return day;
}

// Days since 1970. Years begin in March here, so that the day of a leap year is their last.
int64_t EpochDay(const JavaDate& date) {
  const int64_t year = int64_t{date.year} - (date.month <= 2 ? 1 : 0);
  const int64_t cycle = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_cycle = year - cycle * 400;
  const int64_t month = (date.month + 9) % 12;
  const int64_t day_of_year = (153 * month + 2) / 5 + date.day - 1;
  return cycle * kDaysOf400Years + year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 +
         day_of_year - kDaysBefore1970;
}

Status NoDate(std::string_view what) { return FailedPrecondition("{} is no date", what); }

Result<JavaDate> Checked(int64_t year, int64_t month, int64_t day) {
  if (year < -kMostYear || year > kMostYear)
    return FailedPrecondition("the year {} is not one from {} to {}", year, -kMostYear, kMostYear);
  if (month < 1 || month > 12) return FailedPrecondition("{} is no month", month);
  if (day < 1 || day > LengthOfMonth(year, static_cast<int32_t>(month)))
    return NoDate(fmt::format("day {} of month {} of {}", day, month, year));
  return JavaDate{static_cast<int32_t>(year), static_cast<int32_t>(month), static_cast<int32_t>(day)};
}

Result<JavaDate> OfEpochDay(int64_t days) {
  constexpr int64_t kMostDays = int64_t{kMostYear + 1} * 366;
  if (days > kMostDays || days < -kMostDays) return NoDate(fmt::format("day {} from 1970", days));
  const int64_t from_march = days + kDaysBefore1970;
  const int64_t cycle = (from_march >= 0 ? from_march : from_march - kDaysOf400Years + 1) / kDaysOf400Years;
  const int64_t day_of_cycle = from_march - cycle * kDaysOf400Years;
  const int64_t year_of_cycle =
      (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36524 - day_of_cycle / 146096) / 365;
  const int64_t day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
  const int64_t month = (5 * day_of_year + 2) / 153;
  const int64_t day = day_of_year - (153 * month + 2) / 5 + 1;
  const int64_t year = cycle * 400 + year_of_cycle + (month >= 10 ? 1 : 0);
  return Checked(year, month < 10 ? month + 3 : month - 9, day);
}

// ---- LocalDate.

const JavaDate& DateAt(const JavaCall& a, size_t i) { return std::get<JavaDate>(a[i]); }
int64_t LongAt(const JavaCall& a, size_t i) { return std::get<int64_t>(a[i]); }

Result<JavaValue> AsValue(const Result<JavaDate>& date) {
  HEDDLE_RETURN_IF_ERROR(date.status());
  return JavaValue(*date);
}

// yyyy-MM-dd; a year of more than four digits has a sign.
Result<JavaValue> ParseDate(const JavaCall& a) {
  const JavaText& text = a.Text(0);
  size_t at = 0;
  const auto number = [&](size_t least, size_t most) {
    int64_t value = 0;
    size_t digits = 0;
    for (; digits < most && at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, ++digits)
      value = value * 10 + (text[at] - '0');
    return digits >= least ? value : -1;
  };
  const auto is = [&](char16_t unit) { return at < text.size() && text[at] == unit; };
  const bool negative = is('-');
  const bool positive = is('+');
  if (negative || positive) ++at;
  int64_t year = number(positive ? 5 : 4, negative || positive ? 10 : 4);
  bool ok = year >= 0 && !(negative && year == 0) && is('-');
  if (negative) year = -year;
  ++at;
  const int64_t month = ok ? number(2, 2) : -1;
  ok = month >= 0 && is('-');
  ++at;
  const int64_t day = ok ? number(2, 2) : -1;
  if (day < 0 || at != text.size()) return NoDate(fmt::format("'{}'", Shown(text)));
  const Result<JavaDate> date = Checked(year, month, day);
  if (!date.ok()) return FailedPrecondition("'{}': {}", Shown(text), date.status().message());
  return JavaValue(*date);
}

Result<JavaValue> OfNumbers(const JavaCall& a) {
  return AsValue(Checked(a.Integer(0), a.Integer(1), a.Integer(2)));
}
Result<JavaValue> OfMonth(const JavaCall& a) {
  return AsValue(Checked(a.Integer(0), std::get<JavaMonth>(a[1]).number, a.Integer(2)));
}
Result<JavaValue> OfEpoch(const JavaCall& a) { return AsValue(OfEpochDay(LongAt(a, 0))); }

Result<JavaDate> OfDayOfYear(int32_t year, int32_t day) {
  HEDDLE_ASSIGN_OR_RETURN(const JavaDate first, Checked(year, 1, 1));
  if (day < 1 || day > (IsLeap(year) ? 366 : 365)) return NoDate(fmt::format("day {} of {}", day, year));
  return OfEpochDay(EpochDay(first) + day - 1);
}
Result<JavaValue> OfYearDay(const JavaCall& a) { return AsValue(OfDayOfYear(a.Integer(0), a.Integer(1))); }

Result<JavaDate> PlusMonths(const JavaDate& date, int64_t months) {
  int64_t sum = int64_t{date.year} * 12 + date.month - 1;
  if (__builtin_add_overflow(sum, months, &sum)) return NoDate(fmt::format("a date {} months later", months));
  const int64_t year = (sum >= 0 ? sum : sum - 11) / 12;
  if (year < -kMostYear || year > kMostYear) return Checked(year, 1, 1);
  const auto month = static_cast<int32_t>(sum - year * 12 + 1);
  return JavaDate{static_cast<int32_t>(year), month, std::min(date.day, LengthOfMonth(year, month))};
}
Result<JavaDate> PlusDays(const JavaDate& date, int64_t days) {
  int64_t sum = EpochDay(date);
  if (__builtin_add_overflow(sum, days, &sum)) return NoDate(fmt::format("a date {} days later", days));
  return OfEpochDay(sum);
}
Result<JavaDate> Plus(const JavaDate& date, int64_t amount, JavaTimeUnit unit, bool is_minus) {
  constexpr std::array<int64_t, 6> kSizes = {1, 7, 1, 12, 120, 1200};
  int64_t sum = 0;
  const int64_t size = kSizes[static_cast<size_t>(unit)] * (is_minus ? -1 : 1);
  if (__builtin_mul_overflow(amount, size, &sum)) return NoDate(fmt::format("a date {} later", amount));
  const bool is_days = unit == JavaTimeUnit::kDays || unit == JavaTimeUnit::kWeeks;
  return is_days ? PlusDays(date, sum) : PlusMonths(date, sum);
}
template <JavaTimeUnit unit, bool is_minus>
Result<JavaValue> PlusSome(const JavaCall& a) {
  return AsValue(Plus(DateAt(a, 0), LongAt(a, 1), unit, is_minus));
}
template <bool is_minus>
Result<JavaValue> PlusUnits(const JavaCall& a) {
  return AsValue(Plus(DateAt(a, 0), LongAt(a, 1), std::get<JavaTimeUnit>(a[2]), is_minus));
}
int64_t MonthsOf(const JavaPeriod& period) { return int64_t{period.years} * 12 + period.months; }
template <int sign>
Result<JavaValue> PlusPeriod(const JavaCall& a) {
  const JavaPeriod& period = std::get<JavaPeriod>(a[1]);
  HEDDLE_ASSIGN_OR_RETURN(const JavaDate date, PlusMonths(DateAt(a, 0), sign * MonthsOf(period)));
  return AsValue(PlusDays(date, sign * int64_t{period.days}));
}

Result<JavaValue> WithYear(const JavaCall& a) {
  const JavaDate& date = DateAt(a, 0);
  HEDDLE_ASSIGN_OR_RETURN(const JavaDate first, Checked(a.Integer(1), date.month, 1));
  return AsValue(
      Checked(first.year, first.month, std::min(date.day, LengthOfMonth(first.year, first.month))));
}
Result<JavaValue> WithMonth(const JavaCall& a) {
  const JavaDate& date = DateAt(a, 0);
  HEDDLE_ASSIGN_OR_RETURN(const JavaDate first, Checked(date.year, a.Integer(1), 1));
  return AsValue(
      Checked(first.year, first.month, std::min(date.day, LengthOfMonth(first.year, first.month))));
}
Result<JavaValue> WithDay(const JavaCall& a) {
  return AsValue(Checked(DateAt(a, 0).year, DateAt(a, 0).month, a.Integer(1)));
}
Result<JavaValue> WithDayOfYear(const JavaCall& a) {
  return AsValue(OfDayOfYear(DateAt(a, 0).year, a.Integer(1)));
}

int64_t Between(const JavaDate& from, const JavaDate& to, JavaTimeUnit unit) {
  // A month is full when its day is reached: days are the lower part of a number.
  const auto packed = [](const JavaDate& date) {
    return (int64_t{date.year} * 12 + date.month) * 32 + date.day;
  };
  const int64_t days = EpochDay(to) - EpochDay(from);
  const int64_t months = (packed(to) - packed(from)) / 32;
  switch (unit) {
    case JavaTimeUnit::kDays: return days;
    case JavaTimeUnit::kWeeks: return days / 7;
    case JavaTimeUnit::kMonths: return months;
    case JavaTimeUnit::kYears: return months / 12;
    case JavaTimeUnit::kDecades: return months / 120;
    case JavaTimeUnit::kCenturies: return months / 1200;
  }
  return 0;
}
Result<JavaValue> UntilInUnits(const JavaCall& a) {
  return JavaValue(Between(DateAt(a, 0), DateAt(a, 1), std::get<JavaTimeUnit>(a[2])));
}
Result<JavaValue> BetweenInUnits(const JavaCall& a) {
  return JavaValue(Between(DateAt(a, 1), DateAt(a, 2), std::get<JavaTimeUnit>(a[0])));
}
Result<JavaValue> Until(const JavaCall& a) {
  const JavaDate& from = DateAt(a, 0);
  const JavaDate& to = DateAt(a, 1);
  int64_t months = (int64_t{to.year} - from.year) * 12 + to.month - from.month;
  int64_t days = to.day - from.day;
  if (months > 0 && days < 0) {
    HEDDLE_ASSIGN_OR_RETURN(const JavaDate near, PlusMonths(from, --months));
    days = EpochDay(to) - EpochDay(near);
  } else if (months < 0 && days > 0) {
    ++months;
    days -= LengthOfMonth(to.year, to.month);
  }
  return JavaValue(JavaPeriod{static_cast<int32_t>(months / 12), static_cast<int32_t>(months % 12),
                              static_cast<int32_t>(days)});
}

int32_t CompareDates(const JavaDate& a, const JavaDate& b) {
  if (a.year != b.year) return a.year - b.year;
  return a.month != b.month ? a.month - b.month : a.day - b.day;
}
bool IsBefore(const JavaDate& a, const JavaDate& b) { return CompareDates(a, b) < 0; }
bool IsAfter(const JavaDate& a, const JavaDate& b) { return CompareDates(a, b) > 0; }
int32_t YearOf(const JavaDate& date) { return date.year; }
int32_t MonthNumberOf(const JavaDate& date) { return date.month; }
JavaMonth MonthOf(const JavaDate& date) { return {date.month}; }
int32_t DayOf(const JavaDate& date) { return date.day; }
JavaDayOfWeek DayOfWeekOf(const JavaDate& date) {
  const int64_t days = (EpochDay(date) + 3) % 7;  // The 1st of January of 1970 was a Thursday.
  return {static_cast<int32_t>(days < 0 ? days + 7 : days) + 1};
}
int32_t LengthOfMonthOf(const JavaDate& date) { return LengthOfMonth(date.year, date.month); }
int32_t LengthOfYearOf(const JavaDate& date) { return IsLeap(date.year) ? 366 : 365; }
bool IsLeapYear(const JavaDate& date) { return IsLeap(date.year); }
int32_t HashOfDate(const JavaDate& date) {
  return static_cast<int32_t>((static_cast<uint32_t>(date.year) & 0xFFFFF800) ^
                              ((static_cast<uint32_t>(date.year) << 11) +
                               static_cast<uint32_t>(date.month << 6) + static_cast<uint32_t>(date.day)));
}

// ---- Periods, days of the week, months.

int32_t YearsOf(const JavaPeriod& period) { return period.years; }
int32_t RestOfMonthsOf(const JavaPeriod& period) { return period.months; }
int32_t DaysOf(const JavaPeriod& period) { return period.days; }
bool IsZero(const JavaPeriod& period) { return period == JavaPeriod(); }
bool IsNegative(const JavaPeriod& period) { return period.years < 0 || period.months < 0 || period.days < 0; }
Result<JavaValue> PeriodOf(const JavaCall& a) {
  return JavaValue(JavaPeriod{a.Integer(0), a.Integer(1), a.Integer(2)});
}
JavaPeriod PeriodOfDays(int32_t days) { return {0, 0, days}; }
JavaPeriod PeriodOfMonths(int32_t months) { return {0, months, 0}; }
JavaPeriod PeriodOfYears(int32_t years) { return {years, 0, 0}; }
Result<JavaValue> PeriodOfWeeks(const JavaCall& a) {
  int32_t days = 0;
  if (__builtin_mul_overflow(a.Integer(0), 7, &days))
    return FailedPrecondition("{} weeks have more days than an int can hold", a.Integer(0));
  return JavaValue(JavaPeriod{0, 0, days});
}

template <typename Name>
constexpr int32_t kCountOf = std::is_same_v<Name, JavaMonth> ? 12 : 7;

template <typename Name>
Result<JavaValue> OfNumber(const JavaCall& a) {
  if (a.Integer(0) < 1 || a.Integer(0) > kCountOf<Name>)
    return FailedPrecondition("{} is no {}", a.Integer(0),
                              std::is_same_v<Name, JavaMonth> ? "month" : "day of the week");
  return JavaValue(Name{a.Integer(0)});
}
template <typename Name, int sign>
Name Later(const Name& name, int64_t by) {
  const int64_t sum = name.number - 1 + sign * (by % kCountOf<Name>);
  return {static_cast<int32_t>((sum + kCountOf<Name>) % kCountOf<Name>) + 1};
}
template <typename Name>
int32_t NumberOf(const Name& name) {
  return name.number;
}
template <typename Name>
int32_t OrdinalOf(const Name& name) {
  return name.number - 1;
}
template <typename Name>
int32_t Difference(const Name& a, const Name& b) {
  return a.number - b.number;
}
int32_t LengthOf(const JavaMonth& month, bool leap) { return LengthOfMonth(leap ? 4 : 1, month.number); }
JavaText ConstantName(JavaTimeUnit unit) {
  JavaText name = NameOf(unit);
  std::transform(name.begin(), name.end(), name.begin(), UpperCase);
  return name;
}

template <typename Name>
void AddNames(std::string_view owner, JavaType type, std::vector<JavaMethod>* table) {
  const JavaMethod methods[] = {
      {owner, false, "of", {kInteger}, type, OfNumber<Name>},
      {owner, true, "getValue", {type}, kInteger, OfOne<Name, NumberOf<Name>>},
      {owner, true, "ordinal", {type}, kInteger, OfOne<Name, OrdinalOf<Name>>},
      {owner, true, "name", {type}, kString, TextOfFirst},
      {owner, true, "toString", {type}, kString, TextOfFirst},
      {owner, true, "plus", {type, kLong}, type, OfTwo<Name, Later<Name, 1>, int64_t>},
      {owner, true, "minus", {type, kLong}, type, OfTwo<Name, Later<Name, -1>, int64_t>},
      {owner, true, "equals", {type, kAny}, kBoolean, AreEqual},
      {owner, true, "compareTo", {type, type}, kInteger, OfTwo<Name, Difference<Name>>},
  };
  table->insert(table->end(), std::begin(methods), std::end(methods));
}

template <JavaTimeUnit unit>
void AddSteps(std::string_view plus, std::string_view minus, std::vector<JavaMethod>* table) {
  table->push_back({"LocalDate", true, plus, {kDate, kLong}, kDate, PlusSome<unit, false>});
  table->push_back({"LocalDate", true, minus, {kDate, kLong}, kDate, PlusSome<unit, true>});
}

std::vector<JavaMethod> MakeTable() {
  std::vector<JavaMethod> table = {
      {"LocalDate", false, "parse", {kString}, kDate, ParseDate},
      {"LocalDate", false, "of", {kInteger, kInteger, kInteger}, kDate, OfNumbers},
      {"LocalDate", false, "of", {kInteger, kMonth, kInteger}, kDate, OfMonth},
      {"LocalDate", false, "ofEpochDay", {kLong}, kDate, OfEpoch},
      {"LocalDate", false, "ofYearDay", {kInteger, kInteger}, kDate, OfYearDay},
      {"LocalDate", true, "getYear", {kDate}, kInteger, OfOne<JavaDate, YearOf>},
      {"LocalDate", true, "getMonthValue", {kDate}, kInteger, OfOne<JavaDate, MonthNumberOf>},
      {"LocalDate", true, "getMonth", {kDate}, kMonth, OfOne<JavaDate, MonthOf>},
      {"LocalDate", true, "getDayOfMonth", {kDate}, kInteger, OfOne<JavaDate, DayOf>},
      {"LocalDate", true, "getDayOfYear", {kDate}, kInteger, OfOne<JavaDate, DayOfYear>},
      {"LocalDate", true, "getDayOfWeek", {kDate}, kDayOfWeek, OfOne<JavaDate, DayOfWeekOf>},
      {"LocalDate", true, "lengthOfMonth", {kDate}, kInteger, OfOne<JavaDate, LengthOfMonthOf>},
      {"LocalDate", true, "lengthOfYear", {kDate}, kInteger, OfOne<JavaDate, LengthOfYearOf>},
      {"LocalDate", true, "isLeapYear", {kDate}, kBoolean, OfOne<JavaDate, IsLeapYear>},
      {"LocalDate", true, "toEpochDay", {kDate}, kLong, OfOne<JavaDate, EpochDay>},
      {"LocalDate", true, "plus", {kDate, kLong, kTimeUnit}, kDate, PlusUnits<false>},
      {"LocalDate", true, "minus", {kDate, kLong, kTimeUnit}, kDate, PlusUnits<true>},
      {"LocalDate", true, "plus", {kDate, kPeriod}, kDate, PlusPeriod<1>},
      {"LocalDate", true, "minus", {kDate, kPeriod}, kDate, PlusPeriod<-1>},
      {"LocalDate", true, "withYear", {kDate, kInteger}, kDate, WithYear},
      {"LocalDate", true, "withMonth", {kDate, kInteger}, kDate, WithMonth},
      {"LocalDate", true, "withDayOfMonth", {kDate, kInteger}, kDate, WithDay},
      {"LocalDate", true, "withDayOfYear", {kDate, kInteger}, kDate, WithDayOfYear},
      {"LocalDate", true, "until", {kDate, kDate}, kPeriod, Until},
      {"LocalDate", true, "until", {kDate, kDate, kTimeUnit}, kLong, UntilInUnits},
      {"LocalDate", true, "isBefore", {kDate, kDate}, kBoolean, OfTwo<JavaDate, IsBefore>},
      {"LocalDate", true, "isAfter", {kDate, kDate}, kBoolean, OfTwo<JavaDate, IsAfter>},
      {"LocalDate", true, "isEqual", {kDate, kDate}, kBoolean, AreEqual},
      {"LocalDate", true, "equals", {kDate, kAny}, kBoolean, AreEqual},
      {"LocalDate", true, "compareTo", {kDate, kDate}, kInteger, OfTwo<JavaDate, CompareDates>},
      {"LocalDate", true, "hashCode", {kDate}, kInteger, OfOne<JavaDate, HashOfDate>},
      {"LocalDate", true, "toString", {kDate}, kString, TextOfFirst},
      {"Period", false, "between", {kDate, kDate}, kPeriod, Until},
      {"Period", false, "of", {kInteger, kInteger, kInteger}, kPeriod, PeriodOf},
      {"Period", false, "ofDays", {kInteger}, kPeriod, OfOne<int32_t, PeriodOfDays>},
      {"Period", false, "ofWeeks", {kInteger}, kPeriod, PeriodOfWeeks},
      {"Period", false, "ofMonths", {kInteger}, kPeriod, OfOne<int32_t, PeriodOfMonths>},
      {"Period", false, "ofYears", {kInteger}, kPeriod, OfOne<int32_t, PeriodOfYears>},
      {"Period", true, "getYears", {kPeriod}, kInteger, OfOne<JavaPeriod, YearsOf>},
      {"Period", true, "getMonths", {kPeriod}, kInteger, OfOne<JavaPeriod, RestOfMonthsOf>},
      {"Period", true, "getDays", {kPeriod}, kInteger, OfOne<JavaPeriod, DaysOf>},
      {"Period", true, "toTotalMonths", {kPeriod}, kLong, OfOne<JavaPeriod, MonthsOf>},
      {"Period", true, "isZero", {kPeriod}, kBoolean, OfOne<JavaPeriod, IsZero>},
      {"Period", true, "isNegative", {kPeriod}, kBoolean, OfOne<JavaPeriod, IsNegative>},
      {"Period", true, "equals", {kPeriod, kAny}, kBoolean, AreEqual},
      {"Period", true, "toString", {kPeriod}, kString, TextOfFirst},
      {"Month", true, "length", {kMonth, kBoolean}, kInteger, OfTwo<JavaMonth, LengthOf, bool>},
      {"ChronoUnit", true, "between", {kTimeUnit, kDate, kDate}, kLong, BetweenInUnits},
      {"ChronoUnit", true, "name", {kTimeUnit}, kString, OfOne<JavaTimeUnit, ConstantName>},
      {"ChronoUnit", true, "toString", {kTimeUnit}, kString, TextOfFirst},
  };
  AddSteps<JavaTimeUnit::kDays>("plusDays", "minusDays", &table);
  AddSteps<JavaTimeUnit::kWeeks>("plusWeeks", "minusWeeks", &table);
  AddSteps<JavaTimeUnit::kMonths>("plusMonths", "minusMonths", &table);
  AddSteps<JavaTimeUnit::kYears>("plusYears", "minusYears", &table);
  AddNames<JavaDayOfWeek>("DayOfWeek", kDayOfWeek, &table);
  AddNames<JavaMonth>("Month", kMonth, &table);
  return table;
}

}  // namespace

std::u16string TextOfDate(const JavaDate& date) {
  const int64_t year = date.year < 0 ? -int64_t{date.year} : date.year;
  const std::string_view sign = date.year < 0 ? "-" : year > 9999 ? "+" : "";
  return ToUtf16(fmt::format("{}{:04}-{:02}-{:02}", sign, year, date.month, date.day));
}

std::u16string TextOfPeriod(const JavaPeriod& period) {
  std::string text = "P";
  if (period.years != 0) text += fmt::format("{}Y", period.years);
  if (period.months != 0) text += fmt::format("{}M", period.months);
  if (period.days != 0) text += fmt::format("{}D", period.days);
  return ToUtf16(text.size() > 1 ? text : "P0D");
}

std::u16string NameOf(JavaDayOfWeek day) {
  return std::u16string(kDays[static_cast<size_t>(day.number - 1)]);
}
std::u16string NameOf(JavaMonth month) {
  return std::u16string(kMonths[static_cast<size_t>(month.number - 1)]);
}
std::u16string NameOf(JavaTimeUnit unit) { return std::u16string(kUnits[static_cast<size_t>(unit)]); }

std::span<const JavaMethod> JavaLocalDateMethods() {
  static const auto* const table = new std::vector<JavaMethod>(MakeTable());
  return *table;
}

}  // namespace heddle::ops
