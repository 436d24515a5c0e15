// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership.h"

#include <gtest/gtest.h>

namespace heddle::cluster {
namespace {

WorkerDescription Description(const std::string& uuid, const std::string& instance) {
  WorkerDescription description;
  description.uuid = uuid;
  description.instance = instance;
  return description;
}

TEST(MembershipTest, SilenceMakesAWorkerSuspectAndThenLost) {
  Membership membership(/*ttl_ns=*/1000);
  EXPECT_EQ(membership.NextDeadline(), Membership::kNever);
  EXPECT_FALSE(membership.Register(Description("a", "1"), 100));
  EXPECT_TRUE(membership.Tick(600).empty());
  EXPECT_EQ(membership.Find("a")->state, WorkerState::kAlive);
  EXPECT_EQ(membership.NextDeadline(), 601);
  EXPECT_TRUE(membership.Tick(601).empty());
  EXPECT_EQ(membership.Find("a")->state, WorkerState::kSuspect);
  EXPECT_TRUE(membership.Heartbeat("a", 700));
  EXPECT_EQ(membership.Find("a")->state, WorkerState::kAlive);
  EXPECT_TRUE(membership.Tick(700 + 1249).empty());
  EXPECT_EQ(membership.NextDeadline(), 700 + 1250);
  const int64_t epoch = membership.epoch();
  EXPECT_EQ(membership.Tick(700 + 1250), std::vector<std::string>{"a"});
  EXPECT_GT(membership.epoch(), epoch);
  EXPECT_EQ(membership.Find("a")->state, WorkerState::kLost);
  EXPECT_FALSE(membership.Heartbeat("a", 2000)) << "a lost worker must register again";
  EXPECT_EQ(membership.NextDeadline(), Membership::kNever);
}

TEST(MembershipTest, AnotherProcessOfTheSameWorkerReplacesIt) {
  Membership membership(1000);
  EXPECT_FALSE(membership.Register(Description("a", "1"), 0));
  EXPECT_FALSE(membership.Register(Description("a", "1"), 10)) << "the same process came back";
  EXPECT_TRUE(membership.Register(Description("a", "2"), 20));
  EXPECT_EQ(membership.workers().size(), 1u);
}

TEST(MembershipTest, LostWorkersAreNotKeptForEver) {
  Membership membership(1000);
  for (int i = 0; i < 200; ++i) {
    membership.Register(Description(std::to_string(i), "1"), i);
    membership.Leave(std::to_string(i));
  }
  EXPECT_EQ(membership.workers().size(), 64u);
  EXPECT_EQ(membership.Find("0"), nullptr);
  EXPECT_NE(membership.Find("199"), nullptr);
}

}  // namespace
}  // namespace heddle::cluster
