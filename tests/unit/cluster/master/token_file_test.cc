// SPDX-License-Identifier: Apache-2.0
#include "cluster/access/token_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

class TokenFileTest : public testing::Test {
 protected:
  Result<std::string> Read(const std::string& text, mode_t mode = 0600) {
    testing_support::WriteText(path_, text);
    EXPECT_EQ(chmod(path_.c_str(), mode), 0);
    return ReadToken(path_);
  }
  testing_support::TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/token";
};

TEST_F(TokenFileTest, OnlyWhatAHeaderTakesIsAToken) {
  EXPECT_EQ(*Read(std::string(kToken) + "\n"), kToken);
  EXPECT_EQ(*Read(std::string(kToken) + "\r\nmore"), kToken);
  const Status strange = Read("0123456789abcdef\xc3\xa9").status();
  EXPECT_EQ(strange.message(),
            "the token in '" + path_ + "' has a character that cannot be sent: byte 17, 0xc3");
  EXPECT_EQ(ExitCode(strange), 2);
  EXPECT_EQ(ExitCode(Read("0123456789 abcdef").status()), 2) << "a blank";
  EXPECT_EQ(ExitCode(Read("0123456789\x01"
                          "abcdef")
                         .status()),
            2);
  EXPECT_EQ(Read("").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Read("short\n").status().message(),
            "the token in '" + path_ + "' has 5 characters; it needs 16 to 4096");
  EXPECT_EQ(ExitCode(Read(std::string(4097, 'a')).status()), 2);
  EXPECT_EQ(ReadToken("/dev/zero").status().message(),
            "the first line of '/dev/zero' has more than 8192 bytes");
  EXPECT_EQ(ReadToken(folder_.path() + "/none").status().code(), StatusCode::kNotFound);
}

TEST_F(TokenFileTest, AFileThatOthersCanWriteIsRefused) {
  for (const mode_t mode : {0620, 0602, 0666, 0777}) {
    const Status status = Read(kToken, mode).status();
    EXPECT_EQ(status.message(), "others can write the token file '" + path_ + "'");
    EXPECT_EQ(status.notes()[0], "close it: chmod 600 " + path_);
    EXPECT_EQ(ExitCode(status), 6);
  }
  for (const mode_t mode : {0400, 0440, 0444, 0644}) EXPECT_TRUE(Read(kToken, mode).ok()) << mode;
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(path_.c_str(), 1234, 1234), 0);
  const Status foreign = ReadToken(path_).status();
  EXPECT_EQ(foreign.message(), "the token file '" + path_ + "' belongs to another user");
  EXPECT_EQ(foreign.notes()[0], "whoever owns it could exchange the token: copy it to a file of your own");
}

}  // namespace
}  // namespace heddle::cluster
