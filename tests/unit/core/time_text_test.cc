// SPDX-License-Identifier: Apache-2.0
#include "core/text/time_text.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(TimeTextTest, TimesAreMilliseconds) {
  EXPECT_EQ(ParseTime("500ms", 1'000), 500);
  EXPECT_EQ(ParseTime("90s", 1'000'000), 90'000);
  EXPECT_EQ(ParseTime("0", 1'000), 0);
  EXPECT_EQ(ParseTime("7d", INT64_MAX), 604'800'000);
}

// Whatever number of digits it has.
TEST(TimeTextTest, TooLongIsNotMalformed) {
  for (const char* const text :
       {"2s", "9223372036854775807d", "9223372036854775808s", "99999999999999999999d"}) {
    bool is_too_long = false;
    EXPECT_EQ(ParseTime(text, 1'000, &is_too_long), std::nullopt) << text;
    EXPECT_TRUE(is_too_long) << text;
  }
}

TEST(TimeTextTest, MalformedIsNotTooLong) {
  for (const char* const text : {"", "s", "90", "-1s", "1 s", "1y", "99999999999999999999",
                                 "-99999999999999999999s", "99999999999999999999y"}) {
    bool is_too_long = false;
    EXPECT_EQ(ParseTime(text, 1'000, &is_too_long), std::nullopt) << text;
    EXPECT_FALSE(is_too_long) << text;
  }
}

TEST(TimeTextTest, MomentsAreInUtc) {
  EXPECT_EQ(UtcTime(1'796'021'220'999), "2026-11-30 06:47 UTC");
  EXPECT_EQ(UtcTime(0, "%Y-%m-%dT%H:%M:%S"), "1970-01-01T00:00:00");
  EXPECT_EQ(UtcTime(-1, "%Y-%m-%d %H:%M:%S"), "1969-12-31 23:59:59");
}

}  // namespace
}  // namespace heddle
