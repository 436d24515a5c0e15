// SPDX-License-Identifier: Apache-2.0
#include "core/text/text_encoding.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace heddle
