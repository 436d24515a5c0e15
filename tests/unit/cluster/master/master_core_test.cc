// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cluster/master/master_core_fixture.h"

namespace heddle::cluster {
namespace {

TEST_F(MasterCoreTest, AJobGetsAllItsWorkersOrNone) {
  const std::string id = Submit(2);
  EXPECT_EQ(Get(id).reason, "waits: no worker is alive; 'heddle worker' starts one");
  Connect("a");
  EXPECT_EQ(Get(id).state, JobState::kQueued);
  EXPECT_EQ(Get(id).reason, "waits for 2 workers; 1 is alive");
  EXPECT_EQ(Count(Kind::kStart), 0u);
  Connect("b");
  EXPECT_EQ(Get(id).state, JobState::kStarting);
  const std::vector<WorkerOrder> orders = core_->TakeOrders();
  ASSERT_EQ(orders.size(), 2u);
  EXPECT_EQ(orders[1].worker, "b");
  EXPECT_EQ(orders[1].message.start->options.rank, 1);
  EXPECT_EQ(orders[1].message.start->options.ranks, 2);
  EXPECT_EQ(orders[0].message.start->token, orders[1].message.start->token);
  EXPECT_EQ(orders[0].message.start->token.size(), 32u);
  Ready(id, 0);
  EXPECT_EQ(Count(Kind::kPeers), 0u);
  Ready(id, 1);
  EXPECT_EQ(Get(id).state, JobState::kRunning);
  const std::vector<WorkerOrder> peers = core_->TakeOrders();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_EQ((*peers[0].message.peers)[1].endpoint, "endpoint1");
  EXPECT_EQ((*peers[0].message.peers)[1].name, "worker 1 (worker-b, pid 101)");
  End(id, 0, OkStatus());
  EXPECT_EQ(Get(id).state, JobState::kRunning);
  End(id, 1, OkStatus());
  EXPECT_EQ(Get(id).state, JobState::kSucceeded);
  EXPECT_EQ(Count(Kind::kForget), 2u);
}

TEST_F(MasterCoreTest, JobsStartInOrder) {
  Connect("a");
  const std::string first = Submit(1);
  const std::string second = Submit(1);
  const std::string third = Submit(1);
  EXPECT_EQ(Get(first).state, JobState::kStarting);
  EXPECT_EQ(Get(second).reason, "waits: workers are busy with job " + first);
  EXPECT_EQ(Get(third).reason, "waits for its turn");
  RunUntilRunning(first);
  End(first, 0, OkStatus());
  EXPECT_EQ(Get(second).state, JobState::kStarting);
  EXPECT_EQ(Get(third).state, JobState::kQueued);
  EXPECT_TRUE(core_->Cancel(third).ok());
  EXPECT_EQ(Get(third).state, JobState::kCancelled);
}

TEST_F(MasterCoreTest, AFaultOfTheScriptIsFinalAndTheFirstCauseWins) {
  Connect("a");
  Connect("b");
  const std::string id = Submit(2);
  RunUntilRunning(id);
  End(id, 0, Unavailable("worker 1 is gone"));
  const std::vector<WorkerOrder> orders = Take(Kind::kCancel);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].message.cancel->message(), "another executor failed: worker 1 is gone");
  End(id, 1, Aborted("enough"), /*own_cause=*/true);
  EXPECT_EQ(Get(id).state, JobState::kFailed);
  EXPECT_EQ(Get(id).outcome.message(), "enough");
  EXPECT_EQ(Get(id).attempt, 1);
}

TEST_F(MasterCoreTest, ABrokenLinkIsExplainedByTheCrash) {
  Connect("a");
  Connect("b");
  const std::string id = Submit(2);
  for (int attempt = 1; attempt <= 3; ++attempt) {
    RunUntilRunning(id);
    End(id, 0, Unavailable("the link to worker 1 broke"), /*own_cause=*/true);
    Crash(id, 1, SIGSEGV);
    Pass(kNsPerSecond, {"a", "b"});
  }
  EXPECT_EQ(Get(id).outcome.message(), "worker 1 (worker-b, pid 101) was killed by signal 11");
}

TEST_F(MasterCoreTest, AnEarlierConnectionComesTooLate) {
  WorkerDescription description;
  description.uuid = "a";
  description.instance = "1";
  description.connection = 2;
  core_->WorkerConnected(description, {});
  EXPECT_TRUE(core_->MayConnect(description).ok());
  description.connection = 1;
  const Status late = core_->MayConnect(description);
  EXPECT_EQ(late.code(), StatusCode::kAborted);
  EXPECT_EQ(late.message(), "a later connection of this worker came first");
}

TEST_F(MasterCoreTest, LaterAttemptsDoNotRepeatOutput) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  Output(id, 0, "one\ntw");
  Output(id, 0, "one\ntw");  // sent again after a lost connection
  Crash(id, 0, 9);
  RunUntilRunning(id);
  Output(id, 0, "one\n");
  core_->TakeOrders();
  Output(id, 4, "two\nthree\n");
  const std::vector<WorkerOrder> orders = core_->TakeOrders();
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].output_until, 14);
  End(id, 0, OkStatus());
  EXPECT_EQ(*store_->Output(id, 0, 100), "one\ntwo\nthree\n");
}

TEST_F(MasterCoreTest, AWorkerThatComesBackInTimeGoesOn) {
  Connect("a");
  const std::string id = Submit(1);
  core_->TakeOrders();
  core_->WorkerDisconnected("a");
  Connect("a");
  EXPECT_EQ(Count(Kind::kStart), 1u) << "the first order was lost";
  RunUntilRunning(id);
  core_->TakeOrders();
  core_->WorkerDisconnected("a");
  ExecutorNews running = News(Get(id), 0);
  running.endpoint = "endpoint0";
  Connect("a", "1", {running});
  EXPECT_EQ(Get(id).state, JobState::kRunning);
  EXPECT_EQ(Count(Kind::kStart), 0u);
  End(id, 0, OkStatus());
  EXPECT_EQ(Get(id).state, JobState::kSucceeded);
}

TEST_F(MasterCoreTest, ARestartedMasterFindsRunningJobsAgain) {
  Connect("a");
  Connect("b");
  const std::string id = Submit(2);
  const std::string queued = Submit(1);
  RunUntilRunning(id);
  Output(id, 0, "one\n");
  Restart();
  EXPECT_EQ(Get(id).state, JobState::kRecovering);
  EXPECT_EQ(Get(queued).state, JobState::kQueued);
  ExecutorNews first = News(Get(id), 0);
  first.endpoint = "endpoint0";
  ExecutorNews stray = News(Get(id), 0);
  stray.job = "j99";
  Connect("a", "1", {first, stray});
  EXPECT_EQ(Get(id).state, JobState::kRecovering);
  EXPECT_EQ(Count(Kind::kForget), 1u) << "of the stray";
  ExecutorNews second = News(Get(id), 1);
  second.endpoint = "endpoint1";
  Connect("b", "1", {second});
  EXPECT_EQ(Get(id).state, JobState::kRunning);
  EXPECT_EQ(Get(id).attempt, 1);
  Output(id, 4, "two\n");
  End(id, 0, OkStatus());
  End(id, 1, OkStatus());
  EXPECT_EQ(Get(id).state, JobState::kSucceeded);
  EXPECT_EQ(*store_->Output(id, 0, 100), "one\ntwo\n");
  EXPECT_EQ(Get(queued).state, JobState::kStarting);
}

TEST_F(MasterCoreTest, ARestartedMasterStartsLostJobsAgain) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  Restart();
  Pass(2 * kTtlNs - 1);
  Connect("b");
  core_->Tick();
  EXPECT_EQ(Get(id).attempt, 1) << "its worker may still report";
  Pass(1);
  EXPECT_EQ(Get(id).attempt, 2);
  EXPECT_EQ(Get(id).workers, std::vector<std::string>{"b"});
}

TEST_F(MasterCoreTest, ADrainedWorkerEndsItsJobAndGetsNoOther) {
  Connect("a");
  const std::string first = Submit(1);
  RunUntilRunning(first);
  EXPECT_EQ(core_->Drain("worker-a", true)->uuid, "a");
  EXPECT_EQ(Get(first).state, JobState::kRunning);
  EXPECT_EQ(Count(Kind::kStart), 1u);
  const std::string second = Submit(1);
  End(first, 0, OkStatus());
  EXPECT_EQ(Get(first).state, JobState::kSucceeded);
  EXPECT_EQ(Get(second).state, JobState::kQueued);
  EXPECT_EQ(Get(second).reason,
            "waits: every worker is drained; 'heddle admin undrain' gives one jobs again");
  Connect("a", "2");
  EXPECT_EQ(Get(second).state, JobState::kQueued) << "another process of the same worker";

  Restart();
  EXPECT_EQ(core_->drained().at("a"), "worker-a") << "known before the worker is";
  Connect("a", "2");
  EXPECT_EQ(Get(second).state, JobState::kQueued);
  EXPECT_TRUE(core_->membership().workers().at("a").drained);
  Connect("b");
  EXPECT_EQ(Get(second).workers, std::vector<std::string>{"b"});
  const std::string third = Submit(2);
  EXPECT_EQ(Get(third).reason, "waits for 2 workers; 1 is alive and 1 drained");
  EXPECT_EQ(core_->ExpectedOptions(JobSpecification{}).ranks, 1);
  EXPECT_TRUE(core_->Drain("a", false).ok());
  RunUntilRunning(second);
  End(second, 0, OkStatus());
  EXPECT_EQ(Get(third).workers, (std::vector<std::string>{"a", "b"}));
  Restart();
  EXPECT_TRUE(core_->drained().empty());
}

// Plans that the master makes ahead and those of rank 0 go by the same constants.
TEST_F(MasterCoreTest, AJobWithoutConstantsGetsThoseOfTheWeakestWorker) {
  JobSpecification specification;
  specification.options.threads = 0;  // what each worker has
  EXPECT_EQ(core_->ExpectedOptions(specification).constants, ops::BuiltInConstants(1)) << "nobody is here";
  for (const int threads : {8, 2, 4}) {
    WorkerDescription worker;
    worker.uuid = worker.name = std::to_string(threads);
    worker.threads = threads;
    core_->WorkerConnected(worker, {});
  }
  EXPECT_EQ(core_->ExpectedOptions(specification).constants, ops::BuiltInConstants(2));
  specification.options.threads = 3;
  EXPECT_EQ(core_->ExpectedOptions(specification).constants, ops::BuiltInConstants(3));
  specification.options.constants = ops::BuiltInConstants(1);
  specification.options.constants.measured = true;
  EXPECT_EQ(core_->ExpectedOptions(specification).constants, specification.options.constants);
  specification.request_id = "r";
  specification.workers_wanted = 2;
  ASSERT_TRUE(core_->Submit(specification).ok());
  int starts = 0;
  for (const WorkerOrder& order : core_->TakeOrders()) {
    if (order.kind != Kind::kStart) continue;
    ++starts;
    EXPECT_EQ(order.message.start->options.constants, specification.options.constants);
  }
  EXPECT_EQ(starts, 2);
}

TEST_F(MasterCoreTest, DrainNamesOneWorker) {
  EXPECT_EQ(core_->Drain("worker-a", true).status().code(), StatusCode::kNotFound);
  Connect("a");
  WorkerDescription twin;
  twin.uuid = "b";
  twin.name = "worker-a";
  core_->WorkerConnected(twin, {});
  const Status ambiguous = core_->Drain("worker-a", true).status();
  EXPECT_EQ(ambiguous.message(), "2 workers are called 'worker-a'");
  EXPECT_EQ(ambiguous.notes()[0], "name one by its uuid: heddle admin nodes --json");
  EXPECT_EQ(core_->Drain("b", true)->name, "worker-a");
  disk_.full = true;
  EXPECT_EQ(core_->Drain("a", true).status().code(), StatusCode::kResourceExhausted);
  EXPECT_FALSE(core_->membership().workers().at("a").drained) << "what is not durable has not happened";
}

TEST_F(MasterCoreTest, TheStoreIsReadyAgainThoughNothingHappensToJobs) {
  const std::string waiting = Submit(1);
  EXPECT_TRUE(core_->CheckStore().ok());
  disk_.full = true;
  EXPECT_EQ(core_->Cancel(waiting).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(core_->CheckStore().code(), StatusCode::kResourceExhausted);
  disk_.full = false;
  EXPECT_TRUE(core_->CheckStore().ok());
}

TEST_F(MasterCoreTest, AFullDiskDelaysOutcomesAndChangesNone) {
  const std::string waiting = Submit(1);
  disk_.full = true;
  EXPECT_EQ(core_->Cancel(waiting).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Get(waiting).state, JobState::kQueued);
  Connect("a");
  EXPECT_EQ(Get(waiting).state, JobState::kQueued) << "an attempt that is not written down is not started";
  EXPECT_EQ(Get(waiting).attempt, 0);
  EXPECT_EQ(Get(waiting).reason, "waits: the master cannot write to its job store");
  EXPECT_EQ(Count(Kind::kStart), 0u);
  disk_.full = false;
  EXPECT_EQ(core_->NextDeadline(), clock_.MonotonicNs() + 1'000'000'000) << "it tries again by itself";
  clock_.Advance(1'000'000'000);
  core_->Tick();
  RunUntilRunning(waiting);
  disk_.full = true;
  End(waiting, 0, OkStatus());
  EXPECT_EQ(Get(waiting).state, JobState::kRunning);
  EXPECT_EQ(Get(waiting).reason, "waits: job store: the disk is full");
  EXPECT_TRUE(Get(waiting).Waits()) << "whoever follows it is told";
  disk_.full = false;
  clock_.Advance(1'000'000'000);
  core_->WorkerHeard("a");
  core_->Tick();
  EXPECT_EQ(Get(waiting).state, JobState::kSucceeded);
  EXPECT_FALSE(Get(waiting).Waits());
  EXPECT_TRUE(Get(waiting).outcome.ok()) << Get(waiting).outcome.ToString();
  EXPECT_TRUE((*store_->Load())[0].outcome.ok());
}

TEST_F(MasterCoreTest, CancelKillsWhatDoesNotStop) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  EXPECT_TRUE(core_->Cancel(id).ok());
  EXPECT_EQ(Get(id).state, JobState::kCancelling);
  EXPECT_EQ(Count(Kind::kCancel), 1u);
  Pass(5'000'000'000, {"a"});
  EXPECT_EQ(Count(Kind::kKill), 1u);
  Crash(id, 0, 9);
  EXPECT_EQ(Get(id).state, JobState::kCancelled);
  EXPECT_EQ(ExitCode(Get(id).outcome), 8);
  EXPECT_EQ(Get(id).outcome.message(), "the job was cancelled");
  EXPECT_TRUE(core_->Cancel(id).ok());
}

}  // namespace
}  // namespace heddle::cluster
