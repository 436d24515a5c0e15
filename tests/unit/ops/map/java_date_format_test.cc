// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_date_format.h"

#include <gtest/gtest.h>

#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

constexpr int64_t kDay = 86'400'000;

std::string Rewritten(std::u16string_view text, std::u16string_view from, std::u16string_view to) {
  const Result<JavaDateFormat> format = JavaDateFormat::Parse(from);
  if (!format.ok()) return std::string(format.status().message());
  const Result<int64_t> date = format->Read(text);
  if (!date.ok()) return std::string(date.status().message());
  return ToUtf8(JavaDateFormat::Parse(to)->Write(*date));
}

TEST(CivilTimeTest, EveryDayComesBack) {
  // Four hundred years in the Julian calendar, the change of 1582, and all of today's rules.
  int64_t month = 0;
  for (int64_t day = -400'000; day < 200'000; ++day) {
    const CivilTime time = CivilTimeOf(day * kDay + 12'345'678);
    ASSERT_EQ(MillisecondsOf(time), day * kDay + 12'345'678) << day;
    if (time.month == month) {
      ASSERT_GT(time.day, 1);
    } else {
      ASSERT_EQ(day == -400'000 ? time.day : 1, time.day);
    }
    month = time.month;
  }
}

TEST(CivilTimeTest, TheDayBehindTheFourthOfOctober1582IsTheFifteenth) {
  const int64_t fourth = MillisecondsOf({.year = 1582, .month = 10, .day = 4});
  EXPECT_EQ(CivilTimeOf(fourth + kDay).day, 15);
  EXPECT_EQ(fourth + kDay, -12'219'292'800'000);
  EXPECT_EQ(DaysOf(1582, 10), 21);
  EXPECT_EQ(DaysOf(1500, 2), 29);
  EXPECT_EQ(DaysOf(1900, 2), 28);
  EXPECT_EQ(DaysOf(2000, 2), 29);
}

TEST(JavaDateFormatTest, ReadsLeniently) {
  EXPECT_EQ(Rewritten(u"2001-13-01", u"yyyy-MM-dd", u"yyyy-MM-dd"), "2002-01-01");
  EXPECT_EQ(Rewritten(u"2001-02-30 and more", u"yyyy-MM-dd", u"yyyy-MM-dd"), "2001-03-02");
  EXPECT_EQ(Rewritten(u"20010203", u"yyyyMMdd", u"d.M.yy"), "3.2.01");
  EXPECT_EQ(Rewritten(u"12:30 am", u"hh:mm a", u"HH:mm"), "00:30");
  EXPECT_EQ(Rewritten(u"24h 70m", u"k'h' m'm'", u"HH:mm"), "01:10");
  EXPECT_EQ(Rewritten(u"7 JUNE 46", u"d MMM yy", u"EEEE, dd MMMM yyyy"), "Friday, 07 June 1946");
  EXPECT_EQ(Rewritten(u"7 jun 45", u"d MMMM yy", u"EEE ''yy"), "Wed '45");
}

TEST(JavaDateFormatTest, SaysWhatItCannotRead) {
  EXPECT_EQ(Rewritten(u"2001/02/03", u"yyyy-MM-dd", u"y"),
            "'2001/02/03' is not a date of the form 'yyyy-MM-dd'");
  EXPECT_EQ(Rewritten(u"7 Foo 2001", u"d MMM yyyy", u"y"),
            "'7 Foo 2001' is not a date of the form 'd MMM yyyy'");
  EXPECT_EQ(Rewritten(u"200102", u"yyyyMMdd", u"y"), "'200102' is not a date of the form 'yyyyMMdd'");
  EXPECT_EQ(Rewritten(u"", u"yyyy", u"y"), "'' is not a date of the form 'yyyy'");
  EXPECT_EQ(Rewritten(u"2001", u"yyyy'", u"y"), "the form 'yyyy'' of dates has no second quote");
  EXPECT_EQ(Rewritten(u"2001", u"yyyyZ", u"y"),
            "map() does not know the letter Z in the form 'yyyyZ' of dates");
}

}  // namespace
}  // namespace heddle::ops
