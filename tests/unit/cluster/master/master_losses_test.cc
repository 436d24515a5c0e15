// SPDX-License-Identifier: Apache-2.0
// What executors and workers that are lost, and executors that break, cost a job, and when it is given up.
#include "tests/unit/cluster/master/master_core_fixture.h"

namespace heddle::cluster {
namespace {

// As somebody who pauses processes or machines does; one that is stuck by itself is a crash.
TEST_F(MasterCoreTest, WhoIsStoppedFromOutsideIsLostAndNotBroken) {
  Connect("a");
  const std::string id = Submit(1);
  const auto fall_silent = [&](int signal) {
    RunUntilRunning(id);
    ExecutorNews news = News(Get(id), 0);
    news.exit = ExecutorExit{100, true, signal, /*silent_ms=*/3'000};
    core_->News("a", news);
    Pass(61 * kNsPerSecond, {"a"});
  };
  for (int stop = 1; stop <= 5; ++stop) fall_silent(SIGSTOP);
  EXPECT_EQ(Get(id).losses, 5);
  EXPECT_EQ(Get(id).crashes, 0);
  for (int stop = 1; stop <= 3; ++stop) fall_silent(SIGKILL);
  EXPECT_EQ(Get(id).crashes, 3);
  EXPECT_EQ(Get(id).state, JobState::kFailed);
}

TEST_F(MasterCoreTest, ACrashIsTriedThreeTimesAndThenNamed) {
  Connect("a");
  const std::string id = Submit(1);
  for (int attempt = 1; attempt <= 3; ++attempt) {
    SCOPED_TRACE(attempt);
    EXPECT_EQ(Get(id).attempt, attempt);
    RunUntilRunning(id);
    Crash(id, 0, SIGSEGV, "stack is gone");
    Pass(kNsPerSecond, {"a"});
  }
  EXPECT_EQ(Get(id).state, JobState::kFailed);
  EXPECT_EQ(Get(id).outcome.message(), "worker 0 (worker-a, pid 100) was killed by signal 11");
  EXPECT_EQ(Get(id).outcome.notes()[0], "its last words: stack is gone");
  EXPECT_EQ(Get(id).outcome.notes()[1], "the job was started 3 times; 3 attempts broke by themselves");
  EXPECT_EQ(ExitCode(Get(id).outcome), 70);
}

// Whoever takes machines away (a spot market, an operator, a scheduler) says nothing about the job.
TEST_F(MasterCoreTest, LossesOfMachinesAreNoFaultOfTheJob) {
  Connect("a");
  const std::string id = Submit(1);
  for (int attempt = 1; attempt <= 7; ++attempt) {
    SCOPED_TRACE(attempt);
    ASSERT_EQ(Get(id).attempt, attempt);
    RunUntilRunning(id);
    Crash(id, 0, attempt % 2 == 0 ? SIGKILL : SIGTERM);
    Pass(100 * kNsPerSecond, {"a"});
  }
  EXPECT_EQ(Get(id).losses, 7);
  EXPECT_EQ(Get(id).crashes, 0);
  RunUntilRunning(id);
  End(id, 0, OkStatus());
  EXPECT_EQ(Get(id).state, JobState::kSucceeded);
}

// An address that cannot be bound, a limit of processor time: they come again with every attempt.
TEST_F(MasterCoreTest, WhatAWorkerCannotDoIsNoLoss) {
  Connect("a");
  const std::string id = Submit(1);
  for (int attempt = 1; attempt <= 3; ++attempt) {
    SCOPED_TRACE(attempt);
    ASSERT_EQ(Get(id).attempt, attempt);
    if (attempt == 1) End(id, 0, Unavailable("cannot listen on 192.0.2.1:0"), /*own_cause=*/true);
    if (attempt == 2) Crash(id, 0, SIGXCPU);
    if (attempt == 3) {
      ExecutorNews news = News(Get(id), 0);
      news.failure = Unavailable("cannot start an executor");
      core_->News("a", news);
    }
    Pass(kNsPerSecond, {"a"});
  }
  EXPECT_EQ(Get(id).losses, 0);
  EXPECT_EQ(Get(id).state, JobState::kFailed);
}

TEST_F(MasterCoreTest, EachFailureDoublesThePauseBeforeTheNextAttempt) {
  Connect("a");
  const std::string id = Submit(1);
  for (const int64_t seconds : {0, 1, 2, 4, 8, 16, 32, 60, 60}) {
    SCOPED_TRACE(seconds);
    const int attempt = Get(id).attempt;
    RunUntilRunning(id);
    Crash(id, 0, SIGKILL);
    if (seconds > 0) {
      EXPECT_EQ(Get(id).reason,
                fmt::format("attempt {} ended: worker 0 (worker-a, pid 100) was killed by signal 9; "
                            "the next one starts in {}",
                            attempt, seconds == 60 ? "1 min" : fmt::format("{} s", seconds)));
      Pass(seconds * kNsPerSecond - 1, {"a"});
      EXPECT_EQ(Get(id).attempt, attempt);
      Pass(1, {"a"});
    }
    EXPECT_EQ(Get(id).attempt, attempt + 1);
  }
}

TEST_F(MasterCoreTest, AJobThatKeepsLosingMachinesIsGivenUpAfterItsTime) {
  Connect("a");
  Pass(30 * kNsPerSecond, {"a"});
  const std::string id = Submit(1, /*retry_for_ms=*/10'000);
  RunUntilRunning(id);
  Crash(id, 0, SIGKILL);
  Pass(9 * kNsPerSecond, {"a"});
  RunUntilRunning(id);
  Crash(id, 0, SIGKILL);
  EXPECT_EQ(Get(id).state, JobState::kRecovering);
  Pass(kNsPerSecond, {"a"});
  EXPECT_EQ(Get(id).state, JobState::kFailed) << "its next attempt would have started now";
  EXPECT_EQ(Get(id).outcome.message(),
            "machines or processes were lost 2 times and no attempt ended in 10 s");
  EXPECT_EQ(ExitCode(Get(id).outcome), 6);
  EXPECT_EQ(
      Get(id).outcome.notes()[0],
      "the last word: attempt 2 ended: worker 0 (worker-a, pid 100) was killed by signal 9; the next one "
      "starts in 1 s");
  EXPECT_EQ(Get(id).outcome.notes()[1], "a job is started again for a longer time with --retry-for");

  const std::string patient = Submit(1, /*retry_for_ms=*/10'000);
  RunUntilRunning(patient);
  Crash(patient, 0, SIGKILL);
  RunUntilRunning(patient);
  Pass(60 * kNsPerSecond, {"a"});
  EXPECT_EQ(Get(patient).state, JobState::kRunning) << "what runs is not interrupted";
  Crash(patient, 0, SIGKILL);
  EXPECT_EQ(Get(patient).state, JobState::kFailed);
  EXPECT_EQ(Get(patient).outcome.message(), "worker 0 (worker-a, pid 100) was killed by signal 9");
  EXPECT_EQ(
      Get(patient).outcome.notes()[0],
      "machines or processes were lost 2 times within 1 min; the job is given up after --retry-for 10 s");

  const std::string impatient = Submit(1, /*retry_for_ms=*/0);
  RunUntilRunning(impatient);
  Crash(impatient, 0, SIGKILL);
  EXPECT_EQ(Get(impatient).state, JobState::kFailed);
}

TEST_F(MasterCoreTest, AJobWithoutWorkersIsGivenUpInTimeAndAlsoByTheNextMaster) {
  Connect("a");
  const std::string id = Submit(1, /*retry_for_ms=*/60'000);
  RunUntilRunning(id);
  core_->WorkerLeft("a");
  EXPECT_EQ(Get(id).state, JobState::kRecovering);
  Restart();
  Pass(59 * kNsPerSecond);
  EXPECT_EQ(Get(id).state, JobState::kRecovering);
  disk_.full = true;
  Pass(3 * kNsPerSecond);
  EXPECT_EQ(Get(id).state, JobState::kRecovering) << "an end that is not written down has not come";
  disk_.full = false;
  Pass(2 * kNsPerSecond);
  EXPECT_EQ(Get(id).state, JobState::kFailed);
  EXPECT_EQ(Get(id).outcome.message(), "machines or processes were lost once and no attempt ended in 1 min");
}

TEST_F(MasterCoreTest, AnExecutorThatTheKernelKilledForMemoryIsNotTriedAgain) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  ExecutorNews news = News(Get(id), 0);
  news.exit = ExecutorExit{100, true, SIGKILL};
  news.exit->out_of_memory = true;
  news.exit->peak_bytes = 900;
  news.exit->limit_bytes = 1000;
  core_->News("a", news);
  EXPECT_EQ(Get(id).state, JobState::kFailed);
  EXPECT_EQ(Get(id).attempt, 1);
  EXPECT_EQ(ExitCode(Get(id).outcome), 5);
  EXPECT_NE(Get(id).outcome.message().find("memory ran out: it held 900 bytes, of 1000 that"),
            std::string::npos)
      << Get(id).outcome.message();
}

TEST_F(MasterCoreTest, AFullDiskCountsNoLossTwice) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  disk_.full = true;
  Crash(id, 0, SIGSEGV);
  Pass(5 * kNsPerSecond, {"a"});
  EXPECT_EQ(Get(id).crashes, 0);
  disk_.full = false;
  Pass(kNsPerSecond, {"a"});
  EXPECT_EQ(Get(id).crashes, 1);
  EXPECT_EQ(Get(id).attempt, 2);
}

TEST_F(MasterCoreTest, AWorkerThatFailedTwiceIsAvoided) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  Crash(id, 0, 9);
  Connect("b");
  RunUntilRunning(id);
  EXPECT_EQ(Get(id).workers, std::vector<std::string>{"a"});
  Crash(id, 0, 9);
  Pass(kNsPerSecond, {"a", "b"});
  EXPECT_EQ(Get(id).workers, std::vector<std::string>{"b"});
}

}  // namespace
}  // namespace heddle::cluster
