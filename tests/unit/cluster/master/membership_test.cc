// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/membership.h"

#include <gtest/gtest.h>

#include "cluster/master/worker_identity.h"
#include "tests/support/process.h"

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

TEST(MembershipTest, AnIdentityIsOneProcessAtATime) {
  Membership membership(1000);
  WorkerDescription first = Description("a", "1");
  first.name = "alpha";
  first.host = "here";
  first.pid = 7;
  first.place = "folder";
  EXPECT_TRUE(membership.MayRegister(first).ok());
  membership.Register(first, 0);
  EXPECT_TRUE(membership.MayRegister(first).ok()) << "another connection of the same process";
  WorkerDescription restarted = first;
  restarted.instance = "2";
  EXPECT_TRUE(membership.MayRegister(restarted).ok()) << "it holds the lock of the folder";
  WorkerDescription copy = restarted;
  copy.place = "copy";
  const Status refused = membership.MayRegister(copy);
  EXPECT_EQ(refused.message(),
            "worker alpha is here already, on here (pid 7): this one has a copy of its identity");
  EXPECT_EQ(ExitCode(refused), 6);
  membership.Disconnect("a", 0);
  EXPECT_EQ(membership.MayRegister(copy).message(),
            "worker alpha was here a moment ago, on here (pid 7): its lease must run out first");
  EXPECT_EQ(membership.MayRegister(copy).code(), StatusCode::kUnavailable);
  membership.Leave("a");
  EXPECT_TRUE(membership.MayRegister(copy).ok());
}

TEST(WorkerIdentityTest, ANameIsTakenOnce) {
  const testing_support::TemporaryFolder folder;
  {
    const Result<WorkerIdentity> first = TakeIdentity(folder.path(), "alpha");
    ASSERT_TRUE(first.ok()) << first.status().ToString();
    const Status second = TakeIdentity(folder.path(), "alpha").status();
    EXPECT_EQ(ExitCode(second), 2);
    EXPECT_EQ(second.message(), "a worker called 'alpha' is running already");
  }
  EXPECT_TRUE(TakeIdentity(folder.path(), "alpha").ok());
  std::vector<WorkerIdentity> all;
  Result<WorkerIdentity> next = TakeIdentity(folder.path(), "");
  for (; next.ok() && all.size() < 1000; next = TakeIdentity(folder.path(), ""))
    all.push_back(*std::move(next));
  EXPECT_EQ(next.status().message(), fmt::format("{} workers run on this machine already", all.size()));
}

TEST(MembershipTest, AwaitedWorkersHaveALease) {
  Membership membership(1000);
  membership.Await("a", "alpha", 100);
  EXPECT_EQ(membership.Find("a")->state, WorkerState::kSuspect);
  EXPECT_FALSE(membership.Register(Description("a", "1"), 200)) << "nothing is known of what it ran";
  membership.RenewAll(5000);
  EXPECT_TRUE(membership.Tick(6249).empty());
  EXPECT_EQ(membership.Tick(6250), std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace heddle::cluster
