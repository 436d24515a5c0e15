// SPDX-License-Identifier: Apache-2.0
// Which of the jobs that wait gets the workers that are free.
#include <gtest/gtest.h>

#include "cluster/master/master_core.h"

namespace heddle::cluster {
namespace {

class MasterScheduleTest : public testing::Test {
 protected:
  MasterScheduleTest() : store_(*JobStore::Open(":memory:", {}, clock_)) {
    MasterCoreOptions options;
    options.ttl_ns = INT64_MAX / 4;  // leases are not what is tested here
    options.most_workers = 100;
    core_ = std::make_unique<MasterCore>(*store_, clock_, options);
    EXPECT_TRUE(core_->Start().ok());
  }

  void Connect(const std::string& name, int64_t memory_bytes = 0) {
    WorkerDescription description;
    description.uuid = description.name = name;
    description.instance = "1";
    description.memory_bytes = memory_bytes;
    core_->WorkerConnected(description, {});
  }
  JobSpecification Specification(int workers, int64_t memory_bytes = 0) {
    JobSpecification specification;
    specification.request_id = "r" + std::to_string(++requests_);
    specification.workers_wanted = workers;
    specification.options.memory_bytes = memory_bytes;
    return specification;
  }
  std::string Submit(int workers, int64_t memory_bytes = 0) {
    const Result<const Job*> job = core_->Submit(Specification(workers, memory_bytes));
    EXPECT_TRUE(job.ok()) << job.status().ToString();
    return job.ok() ? (*job)->id : "";
  }
  const Job& Get(const std::string& id) { return **core_->Find(id); }
  bool Waits(const std::string& id) { return Get(id).state == JobState::kQueued; }
  using Names = std::vector<std::string>;
  void End(const std::string& id) {
    const Names workers = Get(id).workers;
    for (size_t rank = 0; rank < workers.size(); ++rank) {
      ExecutorNews news;
      news.job = id;
      news.attempt = Get(id).attempt;
      news.epoch = Get(id).epoch;
      news.rank = static_cast<int>(rank);
      news.endpoint = "endpoint";
      core_->News(workers[rank], news);
    }
    for (size_t rank = 0; rank < workers.size(); ++rank) {
      ExecutorNews news;
      news.job = id;
      news.attempt = Get(id).attempt;
      news.epoch = Get(id).epoch;
      news.rank = static_cast<int>(rank);
      news.done = ExecutorDone();
      news.exit = ExecutorExit{};
      core_->News(workers[rank], news);
    }
    EXPECT_EQ(Get(id).state, JobState::kSucceeded);
  }

  VirtualClock clock_;
  std::unique_ptr<JobStore> store_;
  std::unique_ptr<MasterCore> core_;
  int requests_ = 0;
};

TEST_F(MasterScheduleTest, AJobForMoreWorkersThanThereAreHoldsNobodyUp) {
  Connect("a");
  Connect("b");
  const std::string huge = Submit(64);
  EXPECT_EQ(Get(huge).reason, "waits for 64 workers; 2 are alive");
  clock_.Advance(3'600'000'000'000);
  const std::string small = Submit(1);
  const std::string all = Submit(0);
  EXPECT_EQ(Get(small).workers, Names{"a"});
  End(small);
  EXPECT_EQ(Get(all).workers, (Names{"a", "b"})) << "however long the huge one has waited";
  End(all);
  EXPECT_TRUE(Waits(huge));
  for (int i = 0; i < 62; ++i) Connect("c" + std::to_string(i));
  EXPECT_EQ(Get(huge).workers.size(), 64u);
}

TEST_F(MasterScheduleTest, SmallJobsOvertakeOneThatWaitsButNotForEver) {
  for (const char* name : {"a", "b", "c"}) Connect(name);
  std::string last = Submit(1);
  const std::string big = Submit(3);
  EXPECT_EQ(Get(big).reason, "waits: workers are busy with job " + last);
  // One small job ends when the next has begun: there is never a moment at which all workers are free.
  for (int i = 0; i < 7; ++i) {
    const std::string next = Submit(1);
    EXPECT_FALSE(Waits(next)) << i;
    End(last);
    EXPECT_TRUE(Waits(big));
    last = next;
    clock_.Advance(8'000'000'000);
  }
  clock_.Advance(10'000'000'000);
  const std::string late = Submit(1);
  EXPECT_TRUE(Waits(late));
  EXPECT_EQ(Get(late).reason, "waits: workers are kept for a job that has waited longer");
  End(last);
  EXPECT_EQ(Get(big).workers, (Names{"a", "b", "c"}));
  EXPECT_TRUE(Waits(late));
  End(big);
  EXPECT_FALSE(Waits(late));
}

TEST_F(MasterScheduleTest, OnlyTheWorkersThatAJobNeedsAreKeptForIt) {
  for (const char* name : {"a", "b", "c", "d"}) Connect(name);
  const std::string running = Submit(2);
  EXPECT_EQ(Get(running).workers, (Names{"a", "b"}));
  const std::string big = Submit(3);
  clock_.Advance(60'000'000'000);
  const std::string small = Submit(1);
  EXPECT_TRUE(Waits(small)) << "c and d are kept, and one of a and b";
  End(running);
  EXPECT_EQ(Get(big).workers, (Names{"a", "b", "c"}));
  EXPECT_EQ(Get(small).workers, Names{"d"});
}

TEST_F(MasterScheduleTest, WhatCanNeverStartIsRefusedWithNumbers) {
  const Status workers = core_->Submit(Specification(101)).status();
  EXPECT_EQ(workers.message(), "the job wants 101 workers; this master gives a job 100 at most");
  EXPECT_EQ(ExitCode(workers), 5);
  EXPECT_EQ(workers.notes()[0], "submit it with fewer: --workers N");
  EXPECT_TRUE(core_->Submit(Specification(1, 1000)).ok()) << "nobody is here: a larger one may come";
  Connect("a", 600);
  Connect("b", 800);
  const Status memory = core_->Submit(Specification(1, 900)).status();
  EXPECT_EQ(memory.message(), "the job asks for 900 bytes of memory on a worker; the largest worker has 800");
  EXPECT_EQ(ExitCode(memory), 5);
  EXPECT_EQ(memory.notes()[0], "submit it with less: --memory SIZE");
  EXPECT_TRUE(store_->Load()->size() == 1u) << "what is refused is not written down";
  Connect("c");
  EXPECT_TRUE(core_->Submit(Specification(1, 900)).ok()) << "c does not say how much it has";
}

TEST_F(MasterScheduleTest, AJobGetsWorkersThatHaveItsMemory) {
  Connect("a", 500);
  Connect("b", 1000);
  const std::string two = Submit(2, 700);
  EXPECT_EQ(Get(two).reason,
            "waits for 2 workers with 700 bytes of memory; the largest that is alive has 1000");
  const std::string one = Submit(1, 700);
  EXPECT_EQ(Get(one).workers, Names{"b"});
  const std::string any = Submit(1);
  EXPECT_EQ(Get(any).workers, Names{"a"});
  Connect("c", 900);
  EXPECT_TRUE(Waits(two));
  End(one);
  EXPECT_EQ(Get(two).workers, (Names{"b", "c"}));
}

}  // namespace
}  // namespace heddle::cluster
