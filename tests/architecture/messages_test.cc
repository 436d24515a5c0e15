// SPDX-License-Identifier: Apache-2.0
// Every message that a user can meet has a test that expects its words, which tests/untested-messages looks
// for.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

TEST(MessagesTest, EachIsExpectedByATest) {
  if (std::system("python3 -c '' >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no python3";
  FILE* const script = popen("python3 '" HEDDLE_SOURCE_DIR "/tests/untested-messages' 2>&1", "r");
  ASSERT_NE(script, nullptr);
  std::string output;
  std::array<char, 4096> piece;
  while (const size_t size = fread(piece.data(), 1, piece.size(), script)) output.append(piece.data(), size);
  EXPECT_EQ(pclose(script), 0) << output
                               << "a new message needs a test, most easily a case of tests/errors/cases";
}

}  // namespace
