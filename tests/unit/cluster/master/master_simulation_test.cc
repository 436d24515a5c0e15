// SPDX-License-Identifier: Apache-2.0
// The master's core with simulated workers of several slots, random jobs, kills and restarts.
#include <gtest/gtest.h>

#include "tests/unit/cluster/master/simulated_cluster.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kSecond = SimulatedCluster::kSecond;

JobSpecification JobOf(int workers, int threads = 0, int64_t memory_bytes = 0) {
  JobSpecification specification;
  specification.workers_wanted = workers;
  specification.options.threads = threads;
  specification.options.memory_bytes = memory_bytes;
  return specification;
}

class RandomLife {
 public:
  explicit RandomLife(uint64_t seed) : cluster_(seed), random_(seed + 1'000'000) {
    const auto workers = 2 + random_.Below(4);
    for (uint64_t i = 0; i < workers; ++i) {
      const int threads = 1 + static_cast<int>(random_.Below(8));
      const int64_t memory = random_.Below(3) == 0 ? 0 : 1000 + static_cast<int64_t>(random_.Below(8000));
      cluster_.AddWorker("w" + std::to_string(i), threads, memory,
                         1 + static_cast<int>(random_.Below(static_cast<uint64_t>(threads))));
    }
  }

  void Live(int events) {
    for (int i = 0; i < events && !testing::Test::HasFailure(); ++i) {
      Happen();
      Check();
      const auto pause =
          static_cast<int64_t>(random_.Below(4) == 0 ? random_.Below(20'000) : random_.Below(500));
      cluster_.RunUntil(cluster_.clock.MonotonicNs() + pause * 1'000'000);
      Check();
    }
  }

  // Nobody disturbs any more: every acknowledged job ends, and in the time that its turn can take.
  void Settle() {
    for (const auto& [uuid, node] : cluster_.nodes)
      if (!node.connected) cluster_.Connect(uuid);
    cluster_.Obey();
    int64_t work = 400 * kSecond;
    for (const std::string& job : submitted_) work += cluster_.DurationOf(job) + kSecond;
    const int64_t end = cluster_.clock.MonotonicNs() + work;
    while (!cluster_.AllEnded() && cluster_.clock.MonotonicNs() < end) {
      cluster_.Step(end);
      Check();
      if (testing::Test::HasFailure()) return;
    }
    for (const std::string& id : submitted_) {
      const Job& job = cluster_.Get(id);
      const bool deadline = job.outcome.code() == StatusCode::kDeadlineExceeded;
      const bool fits = job.state == JobState::kSucceeded ||
                        (job.state == JobState::kCancelled && cancelled_.contains(id)) ||
                        (job.state == JobState::kFailed && deadline && job.specification.deadline_ms > 0);
      EXPECT_TRUE(fits) << id << " " << Name(job.state) << ": " << job.reason;
      if (deadline) {
        EXPECT_GE(job.finished_ms, job.EndsByMs());
      }
    }
    EXPECT_TRUE(cluster_.executors.empty());
    for (const auto& [uuid, worker] : cluster_.core->membership().workers())
      EXPECT_TRUE(worker.shares.empty());
    EXPECT_EQ(cluster_.core->Before(cluster_.Get(submitted_.back())), 0);
  }

 private:
  void Happen() {
    switch (random_.Below(12)) {
      case 0: return KillExecutor();
      case 1:
        if (random_.Below(3) == 0) KillWorker();
        return;
      case 2: return Reconnect();
      case 3:
        if (random_.Below(4) == 0) cluster_.Restart();
        return;
      case 4: return Cancel();
      default: return Submit();
    }
  }

  void Submit() {
    // What the smallest worker that there ever is can run, and as many workers as there are.
    int threads = 1000;
    int64_t memory = 1'000'000;
    for (const auto& [uuid, node] : cluster_.nodes) {
      threads = std::min(threads, node.description.threads);
      if (node.description.memory_bytes > 0) memory = std::min(memory, node.description.memory_bytes);
    }
    JobSpecification job = JobOf(static_cast<int>(random_.Below(cluster_.nodes.size() + 1)));
    if (random_.Below(2) == 0)
      job.options.threads = 1 + static_cast<int>(random_.Below(static_cast<uint64_t>(threads)));
    if (random_.Below(2) == 0)
      job.options.memory_bytes = 1 + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(memory)));
    job.priority = static_cast<int>(random_.Below(3)) - 1;
    job.owner = std::string(1, static_cast<char>('a' + random_.Below(3)));
    if (random_.Below(5) == 0) job.deadline_ms = 1 + static_cast<int64_t>(random_.Below(60'000));
    const int64_t duration = static_cast<int64_t>(random_.Below(30'000)) * 1'000'000;
    // The next id, as the store gives them.
    cluster_.durations["j" + std::to_string(submitted_.size() + 1)] = duration;
    submitted_.push_back(cluster_.Submit(job));
  }
  void KillExecutor() {
    if (cluster_.executors.empty()) return;
    auto victim = cluster_.executors.begin();
    std::advance(victim, static_cast<int64_t>(random_.Below(cluster_.executors.size())));
    cluster_.End(victim->first, OkStatus(), SIGKILL);
  }
  std::string AnyWorker() {
    auto worker = cluster_.nodes.begin();
    std::advance(worker, static_cast<int64_t>(random_.Below(cluster_.nodes.size())));
    return worker->first;
  }
  void KillWorker() {
    const std::string uuid = AnyWorker();
    if (cluster_.nodes[uuid].connected) cluster_.KillWorker(uuid);
  }
  void Reconnect() {
    const std::string uuid = AnyWorker();
    if (cluster_.nodes[uuid].connected) return;
    cluster_.Connect(uuid);
    cluster_.Obey();
  }
  void Cancel() {
    if (submitted_.empty() || random_.Below(3) != 0) return;
    const std::string id = submitted_[random_.Below(submitted_.size())];
    if (!IsFinal(cluster_.Get(id).state)) cancelled_.insert(id);
    EXPECT_TRUE(cluster_.core->Cancel(id).ok());
    cluster_.Obey();
  }

  // What is reserved, and that jobs have all or nothing.
  void Check() {
    for (const auto& [uuid, worker] : cluster_.core->membership().workers()) {
      const Share reserved = worker.Reserved();
      if (worker.description.instance.empty()) continue;  // awaited: nobody knows what it offers
      EXPECT_LE(reserved.threads, worker.description.threads) << uuid;
      if (worker.description.memory_bytes > 0) {
        EXPECT_LE(reserved.memory_bytes, worker.description.memory_bytes) << uuid;
      }
      for (const auto& [job, share] : worker.shares) EXPECT_FALSE(IsFinal(cluster_.Get(job).state)) << job;
    }
    for (const Job* job : cluster_.core->Jobs()) {
      const bool runs = job->state == JobState::kStarting || job->state == JobState::kRunning;
      if (!runs) continue;
      const auto wanted = static_cast<size_t>(job->specification.workers_wanted);
      EXPECT_TRUE(wanted == 0 ? !job->workers.empty() : job->workers.size() == wanted) << job->id;
      EXPECT_EQ(job->shares.size(), job->workers.size());
      EXPECT_EQ(std::set<std::string>(job->workers.begin(), job->workers.end()).size(), job->workers.size());
      const int threads = job->specification.options.threads;
      for (const Share& share : job->shares) EXPECT_TRUE(threads == 0 || share.threads == threads);
    }
  }

  SimulatedCluster cluster_;
  SeededRandom random_;
  std::vector<std::string> submitted_;
  std::set<std::string> cancelled_;
};

TEST(MasterSimulationTest, WhateverIsKilledEveryJobEndsAndNoWorkerIsOverbooked) {
  for (uint64_t seed = 0; seed < 40 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    RandomLife life(seed);
    life.Live(60);
    life.Settle();
  }
}

// 100 jobs of two workers, a minute each, on 8 workers of 2 slots: 8 at a time, so that none can end before
// 13 minutes have passed.
TEST(MasterSimulationTest, SlotsAreFilled) {
  SimulatedCluster cluster(0);
  for (int i = 0; i < 8; ++i) cluster.AddWorker("w" + std::to_string(i), 8, 16'000, 2);
  const int64_t begin = cluster.clock.MonotonicNs();
  for (int i = 1; i <= 100; ++i) {
    cluster.durations["j" + std::to_string(i)] = 60 * kSecond;
    cluster.Submit(JobOf(2));
  }
  EXPECT_EQ(cluster.executors.size(), 16u);
  for (const auto& [key, executor] : cluster.executors) EXPECT_EQ(executor.share, (Share{4, 8000}));
  while (!cluster.AllEnded()) cluster.Step(INT64_MAX / 2);
  const int64_t bound = 13 * 60 * kSecond;
  EXPECT_GE(cluster.clock.MonotonicNs() - begin, bound);
  EXPECT_LE(cluster.clock.MonotonicNs() - begin, bound / 100 * 101);
}

// The same with jobs of different size and length: the bound is the work divided by the slots.
TEST(MasterSimulationTest, DifferentJobsFillTheSlotsAsWell) {
  SimulatedCluster cluster(0);
  SeededRandom random(7);
  for (int i = 0; i < 8; ++i) cluster.AddWorker("w" + std::to_string(i), 8, 0, 2);
  int64_t work = 0;
  for (int i = 1; i <= 200; ++i) {
    const int workers = 1 + static_cast<int>(random.Below(4));
    const int64_t duration = static_cast<int64_t>(1 + random.Below(60)) * kSecond;
    cluster.durations["j" + std::to_string(i)] = duration;
    cluster.Submit(JobOf(workers));
    work += workers * duration;
  }
  while (!cluster.AllEnded()) cluster.Step(INT64_MAX / 2);
  EXPECT_LE(cluster.clock.MonotonicNs(), work / 16 / 100 * 110 + 60 * kSecond);
}

// A job for the whole cluster among a flood of small ones of another user who has had as little.
TEST(MasterSimulationTest, ALargeJobIsOvertakenForAMinuteOnly) {
  SimulatedCluster cluster(0);
  for (int i = 0; i < 4; ++i) cluster.AddWorker("w" + std::to_string(i), 4, 0, 2);
  int number = 0;
  const auto submit = [&](int workers) {
    ++number;
    cluster.durations["j" + std::to_string(number)] = (7 + number % 5) * kSecond;
    return cluster.Submit(JobOf(workers, workers == 4 ? 4 : 0));
  };
  for (int i = 0; i < 8; ++i) submit(1);
  const std::string large = submit(4);
  const int64_t begin = cluster.clock.MonotonicNs();
  while (!IsFinal(cluster.Get(large).state) && cluster.clock.MonotonicNs() < begin + 1000 * kSecond) {
    submit(1);
    cluster.RunUntil(cluster.clock.MonotonicNs() + kSecond);
    if (cluster.Get(large).state == JobState::kRunning) break;
  }
  EXPECT_EQ(cluster.Get(large).state, JobState::kRunning);
  EXPECT_LE(cluster.clock.MonotonicNs() - begin, (60 + 11 + 2) * kSecond) << "a minute and the longest job";
  EXPECT_GE(cluster.clock.MonotonicNs() - begin, 60 * kSecond);
}

// Two users, one with a hundred jobs before the other comes with ten.
TEST(MasterSimulationTest, UsersShareTheSlots) {
  SimulatedCluster cluster(0);
  cluster.AddWorker("w", 4, 0, 4);
  const auto submit = [&](const std::string& owner) {
    JobSpecification job = JobOf(1);
    job.owner = owner;
    return cluster.Submit(job);
  };
  for (int i = 1; i <= 110; ++i) cluster.durations["j" + std::to_string(i)] = 10 * kSecond;
  for (int i = 0; i < 100; ++i) submit("ann");
  std::string last;
  for (int i = 0; i < 10; ++i) last = submit("bob");
  const int64_t begin = cluster.clock.MonotonicNs();
  while (!IsFinal(cluster.Get(last).state)) cluster.Step(INT64_MAX / 2);
  EXPECT_LE(cluster.clock.MonotonicNs() - begin, 61 * kSecond) << "not behind the 100, which take 250 s";
  int done = 0;
  for (const Job* job : cluster.core->Jobs()) done += IsFinal(job->state) ? 1 : 0;
  EXPECT_GE(done - 10, 8) << "and ann has not stood still";
}

// 10,000 jobs wait; what happens costs no more for that. Counted in calls, as time is nobody's promise here.
TEST(MasterSimulationTest, TenThousandJobsWait) {
  SimulatedCluster cluster(0);
  cluster.AddWorker("w", 2, 0, 2);
  for (int i = 0; i < 10'000; ++i) {
    JobSpecification job = JobOf(1);
    job.owner = std::to_string(i % 100);
    job.priority = i % 5;
    cluster.Submit(job);
  }
  EXPECT_EQ(cluster.executors.size(), 2u);
  int waiting = 0;
  for (const Job* job : cluster.core->Jobs()) {
    waiting += job->state == JobState::kQueued ? 1 : 0;
    if (job->state == JobState::kQueued) {
      EXPECT_NE(job->reason, "") << job->id;
    }
  }
  EXPECT_EQ(waiting, 9998);
  const int64_t begin = SystemClock().MonotonicNs();
  for (int i = 0; i < 1000; ++i) cluster.core->Tick();
  EXPECT_LT(SystemClock().MonotonicNs() - begin, 5 * kSecond) << "5 ms each at most, on any machine";
  cluster.RunUntil(cluster.clock.MonotonicNs() + 20 * kSecond);
  int done = 0;
  for (const Job* job : cluster.core->Jobs()) done += job->state == JobState::kSucceeded ? 1 : 0;
  EXPECT_GE(done, 38);
}

}  // namespace
}  // namespace heddle::cluster
