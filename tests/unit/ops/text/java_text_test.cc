// SPDX-License-Identifier: Apache-2.0
#include "ops/text/java_text.h"

#include <gtest/gtest.h>

namespace heddle::ops {
namespace {

// As Character.isLetter(char) of Java 17 says.
TEST(JavaTextTest, LettersAreThoseOfEveryScript) {
  for (const char16_t unit : {u'a', u'Z', u'ª', u'ß', u'Ω', u'я', u'א', u'ع', u'中', u'ǅ', u'\uFFDC'})
    EXPECT_TRUE(IsLetter(unit)) << static_cast<int>(unit);
  for (const char16_t unit : {u'0', u'_', u' ', u'×', u'÷', u'\u0300', u'²', u'\xD83D', u'\uFFFD', u'\0'})
    EXPECT_FALSE(IsLetter(unit)) << static_cast<int>(unit);
  int letters = 0;
  for (int unit = 0; unit < 0x10000; ++unit) letters += IsLetter(static_cast<char16_t>(unit)) ? 1 : 0;
  EXPECT_EQ(letters, 48909);
}

TEST(JavaTextTest, CasesAreThoseOfJava) {
  const std::pair<char16_t, char16_t> pairs[] = {
      {u'A', u'a'},           {u'\u00C4', u'\u00E4'}, {u'\u0178', u'\u00FF'}, {u'\u03A9', u'\u03C9'},
      {u'\u042F', u'\u044F'}, {u'\u0100', u'\u0101'}, {u'\u0531', u'\u0561'}, {u'\u10A0', u'\u2D00'}};
  for (const auto& [capital, small] : pairs) {
    EXPECT_EQ(LowerCase(capital), small);
    EXPECT_EQ(LowerCase(small), small);
    EXPECT_EQ(UpperCase(small), capital);
    EXPECT_EQ(UpperCase(capital), capital);
  }
  EXPECT_EQ(UpperCase(u'ς'), u'Σ');
  EXPECT_EQ(UpperCase(u'ß'), u'ß');
  EXPECT_EQ(LowerCase(u'İ'), u'i');
  EXPECT_EQ(LowerCase(u'ǅ'), u'ǆ');
  EXPECT_EQ(LowerCase(u'1'), u'1');
}

}  // namespace
}  // namespace heddle::ops
