// SPDX-License-Identifier: Apache-2.0
#include "core/text/text_encoding.h"

#include <gtest/gtest.h>

#include <string>

namespace heddle {
namespace {

TEST(TextEncodingTest, PlainTextIsNotForeign) {
  for (std::string_view text : {"", "1", "1,2", "1,2\r\n3,4\r\n", "1,2\r", "1,2 \r\r\n",
                                "\xEF\xBB\xBF"
                                "a\n",
                                "\xFF\xFF"})
    EXPECT_FALSE(FindForeignEncoding(text)) << text;
  EXPECT_EQ(ByteOrderMarkBytes("\xEF\xBB\xBF"
                               "a"),
            3u);
  EXPECT_EQ(ByteOrderMarkBytes("a"), 0u);
}

using std::string_view_literals::operator""sv;

TEST(TextEncodingTest, FilesOfOtherKindsAreNamed) {
  const auto name_of = [](std::string_view beginning) {
    const auto foreign = FindForeignEncoding(beginning);
    return foreign ? foreign->name : "text";
  };
  EXPECT_EQ(name_of("BZh91AY&SY\x93\0\x0d"sv), "a file packed by bzip2");
  EXPECT_EQ(name_of("\xFD"
                    "7zXZ\0\0"sv),
            "a file packed by xz");
  EXPECT_EQ(name_of("PK\x03\x04\x14\0"sv), "a zip archive");
  EXPECT_EQ(name_of("SQLite format 3\0\x10"sv), "a database of SQLite");
  EXPECT_EQ(name_of("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1\0"sv),
            "a workbook of Excel (xls) or another Office document");
  EXPECT_EQ(name_of("%PDF-1.7\n"), "a PDF document");
  EXPECT_EQ(name_of("\x80\x04\x95\x1a\0"sv), "a pickle of Python");
  EXPECT_EQ(name_of("ORC\x08\0"sv), "an ORC file");
  EXPECT_EQ(name_of(std::string(257, 'a') + std::string("ustar\0", 6)), "a tar archive");
  EXPECT_EQ(name_of("\n<!DOCTYPE HTML>\n<p>"), "an HTML page");
  // Texts may begin with the letters of a mark.
  for (const char* text :
       {"ORC,GOBLIN\n1,2\n", "BZh9,a\n", "GIF8 1:2\n", "FEA1\n5\n", "X\n1\n", "<html", "PK,1"})
    EXPECT_EQ(name_of(text), text == "<html"sv ? "an HTML page" : "text") << text;
}

}  // namespace
}  // namespace heddle
