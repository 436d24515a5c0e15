// SPDX-License-Identifier: Apache-2.0
// `heddle fmt` on files and folders; what it makes of texts is tested in tests/unit/compiler.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/process.h"

namespace heddle {
namespace {

using testing_support::Finished;
using testing_support::ReadText;
using testing_support::RunProcess;
using testing_support::TemporaryFolder;
using testing_support::WriteText;

class FmtTest : public testing::Test {
 protected:
  Finished Run(std::vector<std::string> words, const std::string& input = "") {
    words.insert(words.begin(), {HEDDLE_BINARY_DIR "/heddle", "fmt"});
    return RunProcess(words, folder_.path(), 60, input);
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  TemporaryFolder folder_;
};

TEST_F(FmtTest, FilesAndFoldersAreFormattedInPlace) {
  WriteText(Path("a.dml"), "x=1\n");
  WriteText(Path("scripts/deep/b.dml"), "y=2\n");
  WriteText(Path("scripts/data.csv"), "1,2\n");
  ASSERT_EQ(chmod(Path("a.dml").c_str(), 0640), 0);
  const Finished check = Run({"--check", "a.dml", "scripts"});
  EXPECT_EQ(check.output, "a.dml\nscripts/deep/b.dml\n");
  EXPECT_EQ(check.code, 1);
  EXPECT_EQ(ReadText(Path("a.dml")), "x=1\n");
  const Finished done = Run({"a.dml", "scripts"});
  EXPECT_EQ(done.code, 0) << done.errors;
  EXPECT_EQ(done.output + done.errors, "");
  EXPECT_EQ(ReadText(Path("a.dml")), "x = 1\n");
  EXPECT_EQ(ReadText(Path("scripts/deep/b.dml")), "y = 2\n");
  EXPECT_EQ(ReadText(Path("scripts/data.csv")), "1,2\n");
  struct stat facts;
  ASSERT_EQ(stat(Path("a.dml").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0640u);
  EXPECT_EQ(Run({"--check", "a.dml", "scripts"}).code, 0);
}

TEST_F(FmtTest, AFormattedFileIsNotWritten) {
  WriteText(Path("a.dml"), "x = 1\n");
  struct stat before, after;
  ASSERT_EQ(stat(Path("a.dml").c_str(), &before), 0);
  EXPECT_EQ(Run({"a.dml"}).code, 0);
  ASSERT_EQ(stat(Path("a.dml").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST_F(FmtTest, AFileWithASyntaxErrorStaysAndOthersAreFormatted) {
  WriteText(Path("a.dml"), "x=(1\n");
  WriteText(Path("b.dml"), "y=2\n");
  const Finished done = Run({"a.dml", "b.dml"});
  EXPECT_EQ(done.code, 3);
  EXPECT_TRUE(done.errors.starts_with("a.dml:1:5: error: expected ')'")) << done.errors;
  EXPECT_EQ(ReadText(Path("a.dml")), "x=(1\n");
  EXPECT_EQ(ReadText(Path("b.dml")), "y = 2\n");
}

TEST_F(FmtTest, StandardInputGoesToStandardOutput) {
  EXPECT_EQ(Run({"-"}, "x=1\n").output, "x = 1\n");
  const Finished check = Run({"--check", "-"}, "x=1\n");
  EXPECT_EQ(check.output, "");
  EXPECT_EQ(check.code, 1);
  EXPECT_EQ(Run({"--width", "40", "-"}, "if (a_condition_of_some_length > 0) result = 1\n").output,
            "if (a_condition_of_some_length > 0)\n  result = 1\n");
}

TEST_F(FmtTest, WhatIsNoOrdinaryFileIsNotWritten) {
  const Finished done = Run({"/dev/stdin"}, "x=1\n");
  EXPECT_EQ(done.errors,
            "heddle: error: fmt writes ordinary files, and '/dev/stdin' is none\n"
            "'heddle fmt - < FILE' writes to standard output\n");
  EXPECT_EQ(done.code, 3);
}

}  // namespace
}  // namespace heddle
