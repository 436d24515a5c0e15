// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"

#include <gtest/gtest.h>

#include <string>

#include "core/text/utf8.h"

namespace heddle {
namespace {

TEST(StatusTest, IsOnThisRankUntilSomebodySaysOtherwise) {
  const Status failure = FailedPrecondition("solve: singular");
  EXPECT_FALSE(failure.is_on_every_rank());
  EXPECT_TRUE(failure.OnEveryRank().is_on_every_rank());
  EXPECT_FALSE(failure.is_on_every_rank()) << "the one that it was made of stays as it is";
  EXPECT_FALSE(failure.OnEveryRank().OnThisRank().is_on_every_rank());
  EXPECT_FALSE(OkStatus().OnEveryRank().is_on_every_rank());
}

TEST(StatusTest, WhatIsAddedLaterKeepsTheRanksAndTheChoices) {
  const Status failure = DataLoss("it holds 2 arrays")
                             .OnEveryRank()
                             .WithChoices({"a, b", "c"})
                             .WithNote("why")
                             .WithCode(StatusCode::kFailedPrecondition)
                             .At({"a.dml", 3, 1});
  EXPECT_TRUE(failure.is_on_every_rank());
  EXPECT_EQ(failure.choices(), (std::vector<std::string>{"a, b", "c"}));
  EXPECT_EQ(failure.ToString(), "a.dml:3:1: it holds 2 arrays\nwhy");
}

TEST(StatusTest, MostFailuresLeaveNothingToChoose) {
  EXPECT_TRUE(NotFound("no such file").choices().empty());
  EXPECT_TRUE(OkStatus().choices().empty());
  EXPECT_TRUE(OkStatus().WithChoices({"a"}).ok());
}

// Names and paths of any length are quoted: the fixed words on both sides of them stay.
TEST(StatusTest, LongLinesLoseTheirMiddle) {
  const std::string name(16'000, 'n');
  const Status failure = NotFound("the file '{}' is not there", name).WithNote("tried " + name);
  EXPECT_EQ(failure.message().size(), 903u);
  EXPECT_TRUE(failure.message().starts_with("the file 'nnn")) << failure.message();
  EXPECT_TRUE(failure.message().ends_with("nnn' is not there")) << failure.message();
  EXPECT_NE(failure.message().find("n...n"), std::string::npos);
  EXPECT_EQ(failure.notes()[0].size(), 903u);
  const std::string line(1000, 'n');
  EXPECT_EQ(NotFound("{}\n{}", line, line).message(), line + "\n" + line) << "each line counts by itself";
  EXPECT_EQ(Aborted("{}", name).message(), name) << "what stop() says is the script's own text";
}

TEST(StatusTest, NoCharacterIsCut) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\u20ac";  // three bytes each
  for (int shift = 0; shift < 3; ++shift) {
    const std::string message =
        NotFound("{}{}", std::string(static_cast<size_t>(shift), '-'), text).message();
    EXPECT_LE(message.size(), 903u);
    EXPECT_EQ(EscapeInvalidUtf8(message), message);
  }
}

}  // namespace
}  // namespace heddle
