// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace heddle
