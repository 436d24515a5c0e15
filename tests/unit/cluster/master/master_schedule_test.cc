// SPDX-License-Identifier: Apache-2.0
// Which of the jobs that wait gets the workers that are free.
#include <gtest/gtest.h>

#include <algorithm>

#include "cluster/master/master_core.h"

namespace heddle::cluster {
namespace {

class MasterScheduleTest : public testing::Test {
 protected:
  MasterScheduleTest() : store_(*JobStore::Open(":memory:", {}, clock_)) {
    MasterCoreOptions options;
    options.ttl_ns = INT64_MAX / 4;  // leases are not what is tested here
    options.most_workers = 100;
    options.most_queued = 8;
    options.most_queued_of_user = 5;
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
  void ConnectWith(const WorkerDescription& offers) {
    WorkerDescription description = offers;
    description.uuid = description.name;
    description.instance = "1";
    core_->WorkerConnected(description, {});
  }
  std::string Submit(const JobSpecification& specification) {
    const Result<const Job*> job = core_->Submit(specification);
    EXPECT_TRUE(job.ok()) << job.status().ToString();
    return job.ok() ? (*job)->id : "";
  }
  // Time passes, and the master is awake when it wants to be.
  void Pass(int64_t seconds) {
    for (const int64_t end = clock_.MonotonicNs() + seconds * 1'000'000'000; clock_.MonotonicNs() < end;) {
      clock_.Advance(
          std::clamp<int64_t>(core_->NextDeadline() - clock_.MonotonicNs(), 1, end - clock_.MonotonicNs()));
      core_->Tick();
    }
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

TEST_F(MasterScheduleTest, AWorkerIsDividedAmongJobs) {
  ConnectWith({.name = "a", .threads = 8, .memory_bytes = 1000, .slots = 2});
  JobSpecification half = Specification(1);
  half.options.threads = 0;
  const std::string first = Submit(half);
  EXPECT_EQ(Get(first).shares, (std::vector<Share>{{4, 500}})) << "a slot, for who does not say";
  JobSpecification exact = Specification(1, 100);
  exact.options.threads = 3;
  EXPECT_EQ(Get(Submit(exact)).shares, (std::vector<Share>{{3, 100}}));
  EXPECT_EQ(core_->membership().workers().at("a").Reserved(), (Share{7, 600}));
  const std::string much = Submit(Specification(1, 401));
  EXPECT_EQ(Get(much).reason, "waits: workers are busy with job j2");
  EXPECT_EQ(Get(Submit(Specification(1, 400))).shares, (std::vector<Share>{{1, 400}}));
  const std::string late = Submit(Specification(1, 1));
  EXPECT_TRUE(Waits(late)) << "no thread is left";
  End(first);
  EXPECT_FALSE(Waits(much));
  EXPECT_FALSE(Waits(late));
}

TEST_F(MasterScheduleTest, ExecutorsAreToldTheirShare) {
  ConnectWith({.name = "a", .threads = 8, .memory_bytes = 1000, .slots = 2});
  ConnectWith({.name = "b", .threads = 2, .memory_bytes = 600});
  JobSpecification both = Specification(2);
  both.options.threads = 0;
  both.options.plans = {"plan"};
  both.options.ranks = 2;
  both.planned_bytes = 501;
  EXPECT_EQ(core_->ExpectedOptions(both).memory_bytes, 500);
  const std::string job = Submit(both);
  EXPECT_EQ(Get(job).shares, (std::vector<Share>{{4, 500}, {2, 500}})) << "the same memory on every rank";
  std::vector<WorkerOrder> orders = core_->TakeOrders();
  ASSERT_EQ(orders.size(), 2u);
  EXPECT_EQ(orders[0].message.start->options.threads, 4);
  EXPECT_EQ(orders[1].message.start->options.threads, 2);
  EXPECT_EQ(orders[1].message.start->options.memory_bytes, 500);
  EXPECT_TRUE(orders[1].message.start->options.plans.empty()) << "made for 501 bytes";
}

TEST_F(MasterScheduleTest, MoreThreadsThanAnyWorkerHasAreRefused) {
  ConnectWith({.name = "a", .threads = 4, .memory_bytes = 100});
  ConnectWith({.name = "b", .threads = 8, .memory_bytes = 10});
  JobSpecification job = Specification(1);
  job.options.threads = 9;
  const Status threads = core_->Submit(job).status();
  EXPECT_EQ(threads.message(), "the job asks for 9 threads on a worker; the largest worker has 8");
  EXPECT_EQ(threads.notes()[0], "submit it with fewer: --threads N");
  EXPECT_EQ(ExitCode(threads), 5);
  job.options.threads = 8;
  job.options.memory_bytes = 50;
  const Status both = core_->Submit(job).status();
  EXPECT_EQ(both.message(),
            "the job asks for 8 threads and 50 bytes of memory on a worker; no worker has both");
  job.options.memory_bytes = 10;
  job.workers_wanted = 2;
  EXPECT_EQ(Get(Submit(job)).reason, "waits for 2 workers with 8 threads; the largest that is alive has 8");
  job.request_id = "another";
  job.options.memory_bytes = 11;
  job.options.threads = 5;
  EXPECT_EQ(core_->Submit(job).status().message(),
            "the job asks for 5 threads and 11 bytes of memory on a worker; no worker has both");
}

TEST_F(MasterScheduleTest, HigherPrioritiesStartFirst) {
  Connect("a");
  const std::string running = Submit(1);
  const std::string plain = Submit(1);
  JobSpecification urgent = Specification(1);
  urgent.priority = 3;
  const std::string first = Submit(urgent);
  EXPECT_EQ(core_->Before(Get(first)), 0);
  EXPECT_EQ(core_->Before(Get(plain)), 1);
  EXPECT_EQ(core_->Before(Get(running)), 0) << "it does not wait";
  End(running);
  EXPECT_FALSE(Waits(first));
  EXPECT_TRUE(Waits(plain));
}

TEST_F(MasterScheduleTest, TheQueueHasALimitForAllAndForEachUser) {
  Connect("a");
  const auto of = [&](const std::string& owner) {
    JobSpecification job = Specification(1);
    job.owner = owner;
    return job;
  };
  Submit(of("ann"));  // runs
  for (int i = 0; i < 5; ++i) Submit(of("ann"));
  const Status mine = core_->Submit(of("ann")).status();
  EXPECT_EQ(mine.message(), "5 jobs of yours wait for workers; the master keeps 5 of one user at most");
  EXPECT_EQ(ExitCode(mine), 6);
  EXPECT_EQ(mine.notes()[0], "submit it again when some have ended: 'heddle job list' shows them");
  for (int i = 0; i < 3; ++i) Submit(of("bob"));
  const Status all = core_->Submit(of("eve")).status();
  EXPECT_EQ(all.message(), "8 jobs wait for workers; the master keeps 8 at most");
  EXPECT_EQ(ExitCode(all), 6);
  EXPECT_EQ(store_->Load()->size(), 9u);
  // One that is here already is no further one.
  JobSpecification known = of("ann");
  known.request_id = "r1";
  EXPECT_EQ((*core_->Submit(known))->id, "j1");
  known.owner = "eve";
  EXPECT_EQ(core_->MayQueue(known).message(), all.message()) << "an id is that of an owner";
  EXPECT_TRUE(core_->Cancel("j2").ok());
  EXPECT_TRUE(core_->MayQueue(of("eve")).ok());
  Submit(of("eve"));
}

TEST_F(MasterScheduleTest, AJobFailsWhenItsDeadlinePasses) {
  Connect("a");
  JobSpecification short_of_time = Specification(1);
  short_of_time.deadline_ms = 7'200'000;
  const std::string running = Submit(short_of_time);
  short_of_time = Specification(1);
  short_of_time.deadline_ms = 90'000;
  const std::string waiting = Submit(short_of_time);
  const std::string patient = Submit(1);
  Pass(89);
  EXPECT_TRUE(Waits(waiting));
  Pass(1);
  const Job& failed = Get(waiting);
  EXPECT_EQ(failed.state, JobState::kFailed) << "it cannot be finished in time any more";
  EXPECT_EQ(failed.outcome.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(failed.outcome.message(),
            "the job was not finished 90 s after it was submitted, as its deadline says");
  EXPECT_EQ(failed.outcome.notes()[0],
            "a job gets more time with --deadline, and comes first with --priority");
  EXPECT_EQ(failed.outcome.notes()[1], "it still waits: workers are busy with job j1");
  EXPECT_EQ(ExitCode(failed.outcome), 6);

  Pass(7'110);
  EXPECT_EQ(Get(running).state, JobState::kStarting) << "until its executor has ended";
  std::vector<WorkerOrder> orders = core_->TakeOrders();
  ASSERT_EQ(orders.back().kind, WorkerOrder::Kind::kCancel);
  EXPECT_EQ(orders.back().message.cancel->message(),
            "the job was not finished 2 h after it was submitted, as its deadline says");
  ExecutorNews ended;
  ended.job = running;
  ended.attempt = 1;
  ended.epoch = Get(running).epoch;
  ended.done = ExecutorDone{.status = *orders.back().message.cancel, .own_cause = false};
  ended.exit = ExecutorExit{};
  core_->News("a", ended);
  EXPECT_EQ(Get(running).state, JobState::kFailed);
  EXPECT_EQ(Get(running).outcome.code(), StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(Waits(patient));
}

TEST_F(MasterScheduleTest, AJobThatIsOverInTimeMayUseWhatIsKeptForAnother) {
  for (const char* name : {"a", "b", "c"}) Connect(name);
  const auto with_deadline = [&](int workers, int64_t seconds) {
    JobSpecification job = Specification(workers);
    job.deadline_ms = seconds * 1000;
    return Submit(job);
  };
  const std::string running = with_deadline(1, 1000);
  const std::string large = Submit(3);
  clock_.Advance(60'000'000'000);
  EXPECT_TRUE(Waits(Submit(1))) << "nobody knows how long it takes";
  EXPECT_TRUE(Waits(with_deadline(1, 1100))) << "too late";
  const std::string quick = with_deadline(1, 940);
  EXPECT_EQ(Get(quick).workers, Names{"b"}) << "all of a, b and c are free at second 1000 as before";
  End(running);
  EXPECT_TRUE(Waits(large));
  End(quick);
  EXPECT_EQ(Get(large).workers, (Names{"a", "b", "c"}));
}

// What a worker has beyond the share that is kept there, is anybody's.
TEST_F(MasterScheduleTest, OnlyTheShareOfAJobIsKeptForIt) {
  ConnectWith({.name = "a", .threads = 8});
  const auto of = [&](int threads) {
    JobSpecification job = Specification(1);
    job.options.threads = threads;
    return Submit(job);
  };
  const std::string first = of(2), second = of(3);
  const std::string large = of(6);
  clock_.Advance(60'000'000'000);
  EXPECT_TRUE(Waits(of(2))) << "3 are free, but large may need them when second ends";
  End(second);
  EXPECT_FALSE(Waits(large));
  EXPECT_EQ(core_->membership().workers().at("a").Reserved().threads, 8);
  End(first);
  EXPECT_EQ(core_->membership().workers().at("a").Reserved().threads, 8) << "6 and the 2 that waited";
}

TEST_F(MasterScheduleTest, UsageAndDeadlinesOutliveTheMaster) {
  ConnectWith({.name = "a", .threads = 4});
  JobSpecification job = Specification(1);
  job.owner = "ann";
  job.options.threads = 4;
  const std::string used = Submit(job);
  clock_.Advance(100'000'000'000);
  End(used);
  job.request_id = "again";
  job.deadline_ms = 50'000;
  const std::string running = Submit(job);
  const std::vector<UserUsage> usage = *store_->Usage();
  ASSERT_EQ(usage.size(), 1u);
  EXPECT_EQ(usage[0].user, "ann");
  EXPECT_NEAR(static_cast<double>(usage[0].core_ms), 396'000, 2'000) << "4 threads for 100 s, fading";

  MasterCoreOptions options;
  options.ttl_ns = INT64_MAX / 4;
  core_ = std::make_unique<MasterCore>(*store_, clock_, options);
  ASSERT_TRUE(core_->Start().ok());
  ExecutorNews news;
  news.job = running;
  news.attempt = 1;
  news.epoch = Get(running).epoch;
  WorkerDescription description;
  description.uuid = description.name = "a";
  description.threads = 4;
  description.instance = "1";
  core_->WorkerConnected(description, {news});
  EXPECT_EQ(core_->membership().workers().at("a").Reserved().threads, 4) << "as before";
  // Ann comes behind bob, who has had nothing, although she was there before him.
  JobSpecification next = Specification(1);
  next.owner = "ann";
  const std::string anns = Submit(next);
  next = Specification(1);
  next.owner = "bob";
  EXPECT_EQ(core_->Before(Get(Submit(next))), 0);
  EXPECT_EQ(core_->Before(Get(anns)), 1);
  clock_.Advance(50'000'000'000);
  core_->Tick();
  EXPECT_EQ(core_->TakeOrders().back().kind, WorkerOrder::Kind::kCancel) << "its time is over";
}

}  // namespace
}  // namespace heddle::cluster
