// SPDX-License-Identifier: Apache-2.0
#include "core/text/utf8.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(Utf8Test, WhatIsUtf8StaysAndOtherBytesAreWritten) {
  for (const char* text :
       {"", "plain\n\ttext", "caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x90\x91", "\x1b[31m", "\\xff"}) {
    EXPECT_EQ(EscapeInvalidUtf8(text), text);
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  for (const char* text : {"3,\xff\xfe\n", "caf\xe9!", "cut \xe2\x82", "\x80", "\xc0\xaf"})
    EXPECT_FALSE(IsUtf8(text)) << text;
  EXPECT_EQ(EscapeInvalidUtf8("3,\xff\xfe\n"), "3,\\xff\\xfe\n");
  EXPECT_EQ(EscapeInvalidUtf8("caf\xe9!"), "caf\\xe9!");
  EXPECT_EQ(EscapeInvalidUtf8("cut \xe2\x82"), "cut \\xe2\\x82");
  EXPECT_EQ(EscapeInvalidUtf8("\x80"), "\\x80");
  EXPECT_EQ(EscapeInvalidUtf8("\xc0\xaf"), "\\xc0\\xaf") << "longer than need be";
  EXPECT_EQ(EscapeInvalidUtf8("\xe0\x80\x80"), "\\xe0\\x80\\x80");
  EXPECT_EQ(EscapeInvalidUtf8("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(EscapeInvalidUtf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "past the last character";
  EXPECT_EQ(EscapeInvalidUtf8(std::string_view("a\0b", 3)), std::string_view("a\0b", 3));
}

TEST(Utf8Test, WhatATerminalObeysIsShown) {
  EXPECT_EQ(EscapeForTerminal("caf\xc3\xa9\n\tb"), "caf\xc3\xa9\n\tb");
  EXPECT_EQ(EscapeForTerminal("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(EscapeForTerminal("a\rb\x7f"), "a\\x0db\\x7f");
  EXPECT_EQ(EscapeForTerminal("\xc2\x9b"
                              "31m"),
            "\\u009b31m")
      << "the same in one character";
  EXPECT_EQ(EscapeForTerminal("\xe2\x80\xae"
                              "gpj"),
            "\\u202egpj")
      << "from right to left";
  EXPECT_EQ(EscapeForTerminal("\xff"), "\\xff");
}

TEST(Utf8Test, ACutLeavesWholeCharacters) {
  EXPECT_EQ(CutAtCharacter("abc", 3), "abc");
  EXPECT_EQ(CutAtCharacter("abcd", 3), "abc");
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x91z";  // 1, 2, 3, 4 and 1 bytes
  const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};
  for (size_t most = 0; most < std::size(ends); ++most)
    EXPECT_EQ(CutAtCharacter(text, most), text.substr(0, ends[most])) << most;
  EXPECT_EQ(CutAtCharacter("\xff\xff\xff", 2), "\xff\xff") << "no characters, nothing to keep whole";
  EXPECT_EQ(CutAtCharacter("\x82\x82\x82\x82", 2), "\x82\x82");
}

TEST(Utf8Test, WhatIsShownIsOneLine) {
  EXPECT_EQ(ShownInLine("a\nb\r\nc", 5), "a b  ");
  EXPECT_EQ(ShownInLine("plain", 10), "plain");
}

}  // namespace
}  // namespace heddle
