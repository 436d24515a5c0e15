// SPDX-License-Identifier: Apache-2.0
#include "core/values/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace heddle {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

TEST(ScalarTest, TypesFollowTheValue) {
  EXPECT_EQ(Scalar(1.0).type(), ValueType::kDouble);
  EXPECT_EQ(Scalar(1).type(), ValueType::kInteger);
  EXPECT_EQ(Scalar(true).type(), ValueType::kBoolean);
  EXPECT_EQ(Scalar("a").type(), ValueType::kString);
}

TEST(ScalarTest, ViewsConvert) {
  EXPECT_EQ(Scalar(true).AsDouble(), 1.0);
  EXPECT_EQ(Scalar(7).AsDouble(), 7.0);
  EXPECT_TRUE(std::isnan(Scalar("7").AsDouble()));
  EXPECT_EQ(Scalar(-2.9).AsInteger(), -2);
  EXPECT_EQ(Scalar(kMost).AsInteger(), kMost);
  EXPECT_TRUE(Scalar("TRUE").AsBoolean());
  EXPECT_TRUE(Scalar("true").AsBoolean());
  EXPECT_FALSE(Scalar("True").AsBoolean());
  EXPECT_TRUE(Scalar(0.5).AsBoolean());
  EXPECT_FALSE(Scalar(-0.0).AsBoolean());
}

TEST(ScalarTest, TruncationIsTowardsZeroWithAHairOfSlack) {
  EXPECT_EQ(TruncateToInteger(2.999), 2);
  EXPECT_EQ(TruncateToInteger(-2.999), -2);
  EXPECT_EQ(TruncateToInteger(1 - 0x1p-53), 1);  // 0.9999999999999999 + 2^-53 is 1.
  EXPECT_EQ(TruncateToInteger(1 - 0x1p-51), 0);
  EXPECT_EQ(TruncateToInteger(1e300), kMost);
  EXPECT_EQ(TruncateToInteger(-1e300), kLeast);
  EXPECT_EQ(TruncateToInteger(-0x1p63), kLeast);
  EXPECT_EQ(TruncateToInteger(std::numeric_limits<double>::quiet_NaN()), 0);
}

TEST(ScalarTest, TextIsWhatPrintShows) {
  EXPECT_EQ(Scalar(3.0).ToText(), "3.0");
  EXPECT_EQ(Scalar(3).ToText(), "3");
  EXPECT_EQ(Scalar(false).ToText(), "FALSE");
  EXPECT_EQ(Scalar("a \"b\"").ToText(), "a \"b\"");
}

TEST(ScalarTest, LiteralsAreExact) {
  EXPECT_EQ(Scalar(1.5).ToLiteral(), "0x1.8p+0");
  EXPECT_EQ(Scalar(-0.0).ToLiteral(), "-0x0p+0");
  EXPECT_EQ(Scalar(-3).ToLiteral(), "-3");
  EXPECT_EQ(Scalar("a\"\\\n\x01").ToLiteral(), "\"a\\\"\\\\\\n\\x01\"");
  const Scalar values[] = {0.0,
                           1.5,
                           -0.1,
                           4.9e-324,
                           2.2250738585072009e-308,
                           1.7976931348623157e308,
                           std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(),
                           0,
                           kMost,
                           kLeast,
                           true,
                           false,
                           "",
                           "nan",
                           "TRUE",
                           "3",
                           "tab\tquote\" \x7f \xc3\xa4",
                           std::string("nul\0nul", 7)};
  for (const Scalar& value : values) {
    SCOPED_TRACE(value.ToLiteral());
    const Result<Scalar> parsed = Scalar::ParseLiteral(value.ToLiteral());
    ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
    EXPECT_EQ(*parsed, value);
  }
  EXPECT_TRUE(std::isnan(Scalar::ParseLiteral(Scalar(std::nan("")).ToLiteral())->AsDouble()));
  EXPECT_TRUE(std::signbit(Scalar::ParseLiteral("-0x0p+0")->AsDouble()));
}

TEST(ScalarTest, MalformedLiteralsAreRefused) {
  for (const char* text : {"", "-", "1.5", "true", "0x", "0xzz", "0x-1p0", "1x", "\"open", "\"a\" b",
                           "\"\\q\"", "\"\\x1\"", "99999999999999999999", "--1"})
    EXPECT_EQ(Scalar::ParseLiteral(text).status().message(), std::string("malformed literal: ") + text);
}

}  // namespace
}  // namespace heddle
