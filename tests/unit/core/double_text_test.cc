// SPDX-License-Identifier: Apache-2.0
#include "core/text/double_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>

#include "core/environment/random.h"

namespace heddle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(DoubleTextTest, DoublesLookAsInJava) {
  // Taken from the documentation of java.lang.Double.toString and from its source's tests.
  const std::pair<double, const char*> cases[] = {
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {1.0, "1.0"},
      {-1.5, "-1.5"},
      {100.0, "100.0"},
      {0.001, "0.001"},
      {0.0009999, "9.999E-4"},
      {1e-4, "1.0E-4"},
      {9999999.0, "9999999.0"},
      {9999999.5, "9999999.5"},
      {1e7, "1.0E7"},
      {123456789.0, "1.23456789E8"},
      {1.2345678e8, "1.2345678E8"},
      {123456.789, "123456.789"},
      {0.1 + 0.2, "0.30000000000000004"},
      {1.0 / 3.0, "0.3333333333333333"},
      {100.0 / 3.0, "33.333333333333336"},
      {0.05, "0.05"},
      {2e23, "2.0E23"},
      {1e23, "1.0E23"},
      {8.41e21, "8.41E21"},
      {9007199254740993.0, "9.007199254740992E15"},
      {-1e21, "-1.0E21"},
      {4.9e-324, "4.9E-324"},
      {-4.9e-324, "-4.9E-324"},
      {2 * 4.9e-324, "9.9E-324"},
      {2.2250738585072014e-308, "2.2250738585072014E-308"},
      {1.7976931348623157e308, "1.7976931348623157E308"},
      {kNan, "NaN"},
      {-kNan, "NaN"},
      {kInfinity, "Infinity"},
      {-kInfinity, "-Infinity"},
  };
  for (const auto& [x, text] : cases) EXPECT_EQ(FormatDouble(x), text);
}

TEST(DoubleTextTest, AppendKeepsWhatIsThere) {
  std::string text = "x = ";
  AppendDouble(2.5, &text);
  EXPECT_EQ(text, "x = 2.5");
}

TEST(DoubleTextTest, FixedRoundsTheExactExpansionHalfToEven) {
  EXPECT_EQ(FormatFixed(0.5, 0), "0");
  EXPECT_EQ(FormatFixed(1.5, 0), "2");
  EXPECT_EQ(FormatFixed(2.5, 0), "2");
  EXPECT_EQ(FormatFixed(0.125, 2), "0.12");
  EXPECT_EQ(FormatFixed(0.375, 2), "0.38");
  EXPECT_EQ(FormatFixed(0.0625, 3), "0.062");
  // Not halves: 1.005 is 1.00499999999999989..., 0.15 is 0.1499999999999999944...
  EXPECT_EQ(FormatFixed(1.005, 2), "1.00");
  EXPECT_EQ(FormatFixed(0.15, 1), "0.1");
  EXPECT_EQ(FormatFixed(0.25, 1), "0.2");
  EXPECT_EQ(FormatFixed(0.35, 1), "0.3");
  EXPECT_EQ(FormatFixed(0.45, 1), "0.5");
}

TEST(DoubleTextTest, FixedHasAllItsDigits) {
  EXPECT_EQ(FormatFixed(0.5, 3), "0.500");
  EXPECT_EQ(FormatFixed(-1, 3), "-1.000");
  EXPECT_EQ(FormatFixed(-0.0, 3), "0.000");
  EXPECT_EQ(FormatFixed(-0.0001, 3), "-0.000");
  EXPECT_EQ(FormatFixed(1e22, 1), "10000000000000000000000.0");
  EXPECT_EQ(FormatFixed(1e300, 2).size(), 304u);
  EXPECT_EQ(FormatFixed(4.9e-324, 400).size(), 402u);
  // Behind the digits that identify a number there are zeros.
  EXPECT_EQ(FormatFixed(0.1, 20), "0.10000000000000000000");
  EXPECT_EQ(FormatFixed(-133.4421875, 14), "-133.44218750000000");
  EXPECT_EQ(FormatFixed(123456789.123, 9), "123456789.123000000");
  EXPECT_EQ(FormatFixed(1e23, 1), "100000000000000000000000.0");
  EXPECT_EQ(FormatFixed(-1e-5, 17), "-0.00001000000000000");
  EXPECT_EQ(FormatFixed(2.0 / 3, 17), "0.66666666666666660");
  EXPECT_EQ(FormatFixed(2.0 / 3, 15), "0.666666666666667");
  EXPECT_EQ(FormatFixed(kNan, 3), "NaN");
  EXPECT_EQ(FormatFixed(-kInfinity, 3), "-Infinity");
}

TEST(DoubleTextTest, NumbersAreReadAsInJava) {
  const std::pair<const char*, double> cases[] = {
      {"1", 1.0},
      {"1.", 1.0},
      {".5", 0.5},
      {"+2.5", 2.5},
      {"-2.5", -2.5},
      {"1e3", 1000.0},
      {"1E+3", 1000.0},
      {"1e-3", 0.001},
      {" 7\t\n", 7.0},
      {"1d", 1.0},
      {"1.5f", 1.5},
      {"2D", 2.0},
      {"3F", 3.0},
      {"1e2d", 100.0},
      {"Infinity", kInfinity},
      {"+Infinity", kInfinity},
      {"-Infinity", -kInfinity},
      {"1e999", kInfinity},
      {"-1e999", -kInfinity},
      {"1e-999", 0.0},
      {"4.9E-324", 4.9e-324},
      {"0x1.8p1", 3.0},
      {"0x10p0", 16.0},
      {"-0x1p-1f", -0.5},
      {"00012", 12.0},
      {"0.1", 0.1},
      {"123456789012345678901234567890", 123456789012345678901234567890.0},
  };
  for (const auto& [text, x] : cases) {
    SCOPED_TRACE(text);
    const std::optional<double> value = ParseDouble(text);
    ASSERT_TRUE(value.has_value());
    EXPECT_EQ(*value, x);
  }
  EXPECT_TRUE(std::isnan(ParseDouble("NaN").value()));
  EXPECT_TRUE(std::signbit(ParseDouble("-0").value()));
  EXPECT_TRUE(std::signbit(ParseDouble("-1e-999").value()));
}

TEST(DoubleTextTest, OtherTextsAreNoNumbers) {
  for (const char* text : {"",    " ",     "+",      "-",   ".",        "e5",  "1e",   "1e+",  "1 2",
                           "1,5", "nan",   "inf",    "Inf", "infinity", "--1", "+-1",  "- 1",  "0x",
                           "0x1", "0x1.8", "0x-1p0", "d",   "NaNd",     "1dd", "TRUE", "1_000"}) {
    EXPECT_FALSE(ParseDouble(text).has_value()) << '"' << text << '"';
  }
}

TEST(DoubleTextTest, ReadingWhatWasWrittenGivesTheSameBits) {
  SeededRandom random(1);
  for (int i = 0; i < 20000; ++i) {
    // All exponents alike, and every other number near one, where programs live.
    uint64_t bits = random.Next();
    if (i % 2 == 0) bits = (bits & 0x800fffffffffffff) | (1000 + random.Below(60)) << 52;
    const auto x = std::bit_cast<double>(bits);
    if (std::isnan(x)) continue;
    const std::string text = FormatDouble(x);
    ASSERT_EQ(std::bit_cast<uint64_t>(ParseDouble(text).value()), bits) << text;
  }
}

// The same by std::to_chars, which finds the shortest digits, too, and by strings.
std::string ByToChars(double x) {
  if (!std::isfinite(x)) return std::isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity";
  if (x == 0) return std::signbit(x) ? "-0.0" : "0.0";
  char text[40];
  const std::string shortest(
      text, std::to_chars(text, text + sizeof(text), std::abs(x), std::chars_format::scientific).ptr);
  const size_t e = shortest.find('e');
  std::string digits = shortest.substr(0, e);
  if (digits.size() > 1) digits.erase(1, 1);
  const int exponent = std::stoi(shortest.substr(e + 1));
  const std::string sign = std::signbit(x) ? "-" : "";
  const auto behind = [](const std::string& rest) { return "." + (rest.empty() ? "0" : rest); };
  if (exponent >= 7 || exponent < -3)
    return sign + digits[0] + behind(digits.substr(1)) + "E" + std::to_string(exponent);
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() < whole) digits.resize(whole, '0');
  return sign + digits.substr(0, whole) + behind(digits.substr(whole));
}

TEST(DoubleTextTest, DigitsAreTheShortest) {
  const auto check = [](double x) {
    ASSERT_EQ(FormatDouble(x), ByToChars(x)) << std::bit_cast<uint64_t>(x);
    ASSERT_EQ(FormatDouble(-x), ByToChars(-x)) << std::bit_cast<uint64_t>(x);
    ASSERT_EQ(LengthOfDouble(x), std::ssize(FormatDouble(x))) << std::bit_cast<uint64_t>(x);
    ASSERT_EQ(LengthOfDouble(-x), std::ssize(FormatDouble(-x))) << std::bit_cast<uint64_t>(x);
  };
  SeededRandom random(2);
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t bits = random.Next();
    check(std::bit_cast<double>(bits));
    check(std::bit_cast<double>((bits & 0x800fffffffffffff) | (1000 + bits % 60) << 52));
    check(static_cast<double>(bits % 100'000'000) / 100);  // Short ones.
    check(static_cast<double>(bits % 1'000'000) * 1e-9);
    check(static_cast<double>(bits % 10'000));
  }
  // Both sides of each power of two and of ten; subnormals but for the lowest, where Java has a digit more.
  for (uint64_t exponent = 1; exponent < 2047; ++exponent)
    for (const uint64_t fraction :
         {0x0ULL, 0x1ULL, 0x8000000000000ULL, 0xffffffffffffeULL, 0xfffffffffffffULL})
      check(std::bit_cast<double>(exponent << 52 | fraction));
  for (int exponent = -319; exponent <= 308; ++exponent) {
    const double power = std::strtod(("1e" + std::to_string(exponent)).c_str(), nullptr);
    for (const double x : {std::nextafter(power, 0.0), power, std::nextafter(power, kInfinity)}) check(x);
  }
  for (uint64_t fraction = 1 << 16; fraction < 1ULL << 52; fraction += fraction / 1000)
    check(std::bit_cast<double>(fraction));
}

TEST(DoubleTextTest, NumbersAreWrittenIntoTheirRoom) {
  for (const double x : {-2.2250738585072014E-308, -1.2345678901234567, -1234567.8901234567, -9999999.0,
                         -0.0012345678901234567, -kInfinity, kNan}) {
    std::string room(kNumberRoom + 1, '#');
    char* const end = WriteDouble(x, room.data());
    EXPECT_EQ(std::string(room.data(), end), FormatDouble(x));
    EXPECT_EQ(room.back(), '#');
    EXPECT_EQ(LengthOfDouble(x), end - room.data());
    EXPECT_EQ(LengthOfSingle(static_cast<float>(x)),
              WriteSingle(static_cast<float>(x), room.data()) - room.data());
  }
  EXPECT_EQ(LengthOfDouble(4.9e-324), 8);
}

}  // namespace
}  // namespace heddle
