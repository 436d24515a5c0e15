// SPDX-License-Identifier: Apache-2.0
// Who may write, and who is given up when: permissions, leases, and a master that was away.
#include "tests/unit/cluster/master/master_core_fixture.h"

namespace heddle::cluster {
namespace {

TEST_F(MasterCoreTest, AWorkerThatIsSilentLosesItsRanks) {
  Connect("a");
  Connect("b");
  const std::string id = Submit(2);
  RunUntilRunning(id);
  Pass(kTtlNs, {"a"});
  EXPECT_EQ(Count(Kind::kCancel), 0u);
  Pass(500'000'000);
  EXPECT_EQ(Count(Kind::kCancel), 1u);
  End(id, 0, Cancelled("stopped"));
  EXPECT_EQ(Get(id).state, JobState::kRecovering);
  EXPECT_EQ(Get(id).reason, "waits for 2 workers; 1 is alive");
  Connect("b", "2");
  EXPECT_EQ(Get(id).attempt, 2);
  EXPECT_EQ(Get(id).state, JobState::kStarting);
}

// A process that dies breaks its connection; one that lives makes another at once.
TEST_F(MasterCoreTest, AWorkerWhoseConnectionBreaksHasAQuarterOfALease) {
  // Two seconds at least.
  for (const auto& [ttl_s, ms] : {std::pair(10, 2'500), std::pair(60, 15'000), std::pair(4, 2'000)}) {
    SCOPED_TRACE(ttl_s);
    options_.ttl_ns = ttl_s * kNsPerSecond;
    Restart();
    Connect("a", std::to_string(ttl_s));
    Connect("b", std::to_string(ttl_s));
    const std::string id = Submit(2);
    RunUntilRunning(id);
    core_->TakeOrders();
    core_->WorkerDisconnected("b");
    EXPECT_EQ(Get(id).state, JobState::kRunning) << "it may come back";
    Pass((ms - 100) * int64_t{1'000'000}, {"a"});
    EXPECT_EQ(Count(Kind::kCancel), 0u);
    Pass(200'000'000, {"a"});
    EXPECT_EQ(Count(Kind::kCancel), 1u);
    End(id, 0, Cancelled("stopped"));
    ASSERT_TRUE(core_->Cancel(id).ok());
    ASSERT_EQ(Get(id).state, JobState::kCancelled);
  }
}

TEST_F(MasterCoreTest, AWorkerThatMayChangeFilesIsNotGivenUp) {
  Connect("a");
  Connect("b");
  const std::string id = Submit(2);
  RunUntilRunning(id);
  core_->TakeOrders();
  const int64_t asked_ns = clock_.MonotonicNs();
  Ask(News(Get(id), 1), "b", 1);
  const int64_t until_ns = asked_ns + Take(Kind::kCommit)[0].valid_ns;
  core_->WorkerDisconnected("b");
  while (Count(Kind::kCancel) == 0) Pass(100'000'000, {"a"});
  EXPECT_GT(clock_.MonotonicNs(), until_ns);
}

TEST_F(MasterCoreTest, OnlyTheCurrentAttemptMayChangeFiles) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  const ExecutorNews first = News(Get(id), 0);
  core_->TakeOrders();
  Ask(first, "a", 1);
  const std::vector<WorkerOrder> granted = Take(Kind::kCommit);
  ASSERT_EQ(granted.size(), 1u);
  EXPECT_EQ(granted[0].worker, "a");
  EXPECT_EQ(granted[0].commit.id, 1);
  EXPECT_EQ(granted[0].commit.sent_ns, 1001) << "the worker counts from when it asked";
  EXPECT_LT(granted[0].valid_ns, kTtlNs) << "over before the worker could be given up";

  ExecutorNews other_epoch = first;
  other_epoch.epoch = first.epoch - 1;
  Ask(other_epoch, "a", 2);
  EXPECT_EQ(Count(Kind::kForget), 1u) << "an attempt of the same number, of a store that was lost";
  Connect("b");
  Ask(first, "b", 3);
  EXPECT_EQ(Count(Kind::kCommit), 0u) << "a worker asks for another one's executor";

  Pass(kTtlNs + 500'000'000, {"b"});
  EXPECT_EQ(Get(id).attempt, 2);
  EXPECT_GT(Get(id).epoch, first.epoch);
  core_->TakeOrders();
  Ask(first, "a", 4);
  EXPECT_EQ(Count(Kind::kCommit), 0u) << "a lost worker is not listened to";
  Connect("a", "1", {first});
  Ask(first, "a", 5);
  const std::vector<WorkerOrder> orders = core_->TakeOrders();
  EXPECT_EQ(std::count_if(orders.begin(), orders.end(),
                          [](const WorkerOrder& order) { return order.kind == Kind::kCommit; }),
            0);
  EXPECT_GE(std::count_if(orders.begin(), orders.end(),
                          [](const WorkerOrder& order) { return order.kind == Kind::kForget; }),
            1);

  Ready(id, 0);
  EXPECT_TRUE(core_->Cancel(id).ok());
  core_->TakeOrders();
  Ask(News(Get(id), 0), "b", 1);
  EXPECT_EQ(Count(Kind::kCommit), 0u) << "a job that is being cancelled writes nothing";
}

// A worker is cut off with a permission in its hands, the job is cancelled, and the network comes back.
TEST_F(MasterCoreTest, ACancelledJobEndsNoEarlierThanItsLastPermission) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  core_->TakeOrders();
  const int64_t asked_ns = clock_.MonotonicNs();
  Ask(News(Get(id), 0), "a", 1);
  const int64_t until_ns = asked_ns + Take(Kind::kCommit)[0].valid_ns;
  EXPECT_TRUE(core_->Cancel(id).ok());
  core_->WorkerDisconnected("a");
  while (Get(id).state == JobState::kCancelling) Pass(100'000'000);
  EXPECT_EQ(Get(id).state, JobState::kCancelled);
  EXPECT_GT(clock_.MonotonicNs(), until_ns);
}

TEST_F(MasterCoreTest, AMasterThatWasStoppedLosesNobody) {
  Connect("a");
  Connect("b");
  const std::string id = Submit(2);
  RunUntilRunning(id);
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(15'000'000'000);  // as SIGSTOP does, or a suspended machine
    core_->Tick();
    EXPECT_EQ(Get(id).state, JobState::kRunning);
    EXPECT_EQ(core_->membership().workers().at("a").state, WorkerState::kAlive);
  }
  Pass(kTtlNs - 1);
  EXPECT_EQ(Get(id).state, JobState::kRunning) << "each has a whole lease to be heard in";
  core_->WorkerHeard("a");
  Pass(500'000'001, {"a"});
  EXPECT_EQ(core_->membership().workers().at("b").state, WorkerState::kLost);
  EXPECT_EQ(core_->membership().workers().at("a").state, WorkerState::kAlive);
}

TEST_F(MasterCoreTest, JobsForAllWorkersWaitForThoseThatWereHere) {
  Connect("a");
  Connect("b");
  Connect("c");
  core_->WorkerLeft("c");
  Restart();
  const std::string all = Submit(0);
  Connect("b");
  EXPECT_EQ(Get(all).reason, "waits for worker worker-a, which was here before the master was away");
  Connect("a", "2");
  EXPECT_EQ(Get(all).workers, (std::vector<std::string>{"a", "b"}));
  Ready(all, 0);
  Ready(all, 1);
  End(all, 0, OkStatus());
  End(all, 1, OkStatus());
  EXPECT_EQ(Get(all).state, JobState::kSucceeded);

  Restart();
  const std::string next = Submit(0);
  Connect("b");
  Pass(kTtlNs + 499'999'999, {"b"});
  EXPECT_EQ(Get(next).state, JobState::kQueued);
  Pass(1, {"b"});
  EXPECT_EQ(Get(next).workers, std::vector<std::string>{"b"}) << "no longer than a lease";
}

TEST_F(MasterCoreTest, EpochsNeverComeAgain) {
  Connect("a");
  int64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    const std::string id = Submit(1);
    RunUntilRunning(id);
    EXPECT_GT(Get(id).epoch, last);
    last = Get(id).epoch;
    End(id, 0, OkStatus());
    Restart();
    Connect("a");
  }
  EXPECT_EQ(*store_->LastEpoch(), last);
}

}  // namespace
// What lasts is counted evenly, whoever sets the time of day meanwhile.
TEST_F(MasterCoreTest, ATimeOfDayThatIsSetEndsNoJobAndDelaysNoEnd) {
  constexpr int64_t kYearMs = int64_t{365} * 24 * 3'600 * 1'000;
  for (const int64_t set_ms : {kYearMs, -kYearMs}) {
    SCOPED_TRACE(set_ms);
    clock_.moved_ms = 2 * kYearMs;
    Connect("a");
    const std::string lost = Submit(1, /*retry_for_ms=*/60'000);
    RunUntilRunning(lost);
    JobSpecification late;
    late.request_id = "r" + std::to_string(set_ms);
    late.workers_wanted = 2;
    late.deadline_ms = 90'000;
    const std::string waiting = (*core_->Submit(late))->id;
    core_->WorkerLeft("a");
    clock_.moved_ms += set_ms;
    Pass(59 * kNsPerSecond);
    EXPECT_EQ(Get(lost).state, JobState::kRecovering);
    EXPECT_EQ(Get(waiting).state, JobState::kQueued);
    Pass(2 * kNsPerSecond);
    EXPECT_EQ(Get(lost).state, JobState::kFailed);
    EXPECT_EQ(Get(lost).outcome.message(),
              "machines or processes were lost once and no attempt ended in 1 min");
    EXPECT_EQ(Get(waiting).state, JobState::kQueued);
    Pass(29 * kNsPerSecond);
    EXPECT_EQ(Get(waiting).outcome.code(), StatusCode::kDeadlineExceeded);
  }
  // An attempt that runs is judged by the time since the first loss.
  Connect("a");
  const std::string running = Submit(1, /*retry_for_ms=*/60'000);
  RunUntilRunning(running);
  Crash(running, 0, SIGKILL);
  RunUntilRunning(running);
  clock_.moved_ms += kYearMs;
  Crash(running, 0, SIGKILL);
  EXPECT_EQ(Get(running).state, JobState::kRecovering);
}

// Leases, permissions and pauses are counted, and the order of attempts does not come from the time of day.
TEST_F(MasterCoreTest, ATimeOfDayThatIsSetChangesNoLeaseAndNoAttempt) {
  constexpr int64_t kYearMs = int64_t{365} * 24 * 3'600 * 1'000;
  clock_.moved_ms = 50 * kYearMs;
  Connect("a");
  Connect("b");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  const std::string first = Get(id).workers[0];
  const std::string other = first == "a" ? "b" : "a";
  int64_t epoch = Get(id).epoch;
  for (const int64_t years : {60, 40, 1, 55}) {
    clock_.moved_ms = years * kYearMs;
    Pass(kTtlNs, {"a", "b"});
    EXPECT_EQ(Get(id).state, JobState::kRunning) << years;
    EXPECT_EQ(Get(id).attempt, 1) << years;
  }
  // The time is set back behind a loss, and forward while the job waits for its next attempt.
  clock_.moved_ms = kYearMs;
  Pass(2 * kTtlNs, {other});
  clock_.moved_ms = 0;
  Pass(2 * kNsPerSecond, {other});
  EXPECT_EQ(Get(id).attempt, 2);
  EXPECT_EQ(Get(id).workers[0], other);
  EXPECT_GT(Get(id).epoch, epoch);
  epoch = Get(id).epoch;
  RunUntilRunning(id);
  Restart();
  ExecutorNews running = News(Get(id), 0);
  running.endpoint = "endpoint0";
  Connect(other, "1", {running});
  Pass(kTtlNs, {other});
  EXPECT_EQ(Get(id).state, JobState::kRunning);
  End(id, 0, OkStatus());
  EXPECT_EQ(Get(id).state, JobState::kSucceeded);
  EXPECT_EQ(Get(id).epoch, epoch);
}

}  // namespace heddle::cluster
