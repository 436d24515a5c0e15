// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/master_hub.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/unit/cluster/master/master_core_fixture.h"

namespace heddle::cluster {
namespace {

// A disk that knows how far it has been written.
class CountingDisk : public FullStore {
 public:
  using FullStore::FullStore;

  Result<Job> Add(const JobSpecification& specification, bool* existed) override {
    Result<Job> job = FullStore::Add(specification, existed);
    ++changes;
    return job;
  }
  Status Move(Job* job, JobState state, const std::string& reason) override {
    ++changes;
    return FullStore::Move(job, state, reason);
  }
  int64_t LastChange() const override { return changes; }
  void Sync() override {
    const int64_t covered = changes;
    ++syncs;
    if (awaited > 0)
      while (changes < awaited && covered < awaited) std::this_thread::yield();
    durable = std::max<int64_t>(durable, covered);
  }

  std::atomic<int64_t> changes = 0;
  std::atomic<int64_t> durable = 0;
  std::atomic<int64_t> syncs = 0;
  int64_t awaited = 0;  // A sync takes until there are so many changes.
};

// The worker's end of a connection.
class Port : public MasterHub::WorkerPort {
 public:
  explicit Port(const CountingDisk& disk) : disk_(disk) {}
  void Take(const WorkerOrder& order) override {
    EXPECT_GE(disk_.durable, disk_.changes) << "what it belongs to is on disk";
    jobs.push_back(order.job);
  }
  void End() override {}
  void Wake() override {}

  std::vector<std::string> jobs;

 private:
  const CountingDisk& disk_;
};

JobSpecification Specification(int number) {
  JobSpecification specification;
  specification.request_id = "r" + std::to_string(number);
  specification.workers_wanted = 1;
  return specification;
}

TEST(MasterHubTest, CallsThatComeTogetherShareASync) {
  const auto store = *JobStore::Open(":memory:", {}, SystemClock());
  CountingDisk disk(*store);
  MasterHub hub(disk, SystemClock(), {});
  ASSERT_TRUE(hub.Start().ok());
  disk.awaited = 32;  // The first sync is long: the others come while it goes on.
  std::vector<std::thread> threads;
  for (int i = 0; i < 32; ++i)
    threads.emplace_back([&, i] {
      const int64_t own = hub.Call([&](MasterCore& core) {
        EXPECT_TRUE(core.Submit(Specification(i)).ok());
        return disk.changes.load();
      });
      EXPECT_GE(disk.durable, own) << "it is on disk when it is answered";
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(disk.durable, 32);
  EXPECT_LE(disk.syncs, 3);
  const int64_t syncs = disk.syncs;
  hub.Call([](MasterCore& core) { return core.Jobs().size(); });
  EXPECT_EQ(disk.syncs, syncs) << "nothing is new";
}

// Who follows a job looks at it with a lock held that its watcher takes, too: it would wait for itself.
TEST(MasterHubTest, NobodyWhoOnlyLooksCallsAWatcher) {
  constexpr int kJobs = 2000;
  const auto store = *JobStore::Open(":memory:", {}, SystemClock());
  CountingDisk disk(*store);
  MasterHub hub(disk, SystemClock(), {});
  ASSERT_TRUE(hub.Start().ok());
  const std::thread::id looking = std::this_thread::get_id();
  std::atomic<int> called = 0;
  std::atomic<int> called_by_looking = 0;
  for (int i = 1; i <= kJobs; ++i) {
    hub.Call([&](MasterCore& core) { return core.Submit(Specification(i)).ok(); });
    hub.AddWatcher("j" + std::to_string(i), [&] {
      ++called;
      if (std::this_thread::get_id() == looking) ++called_by_looking;
    });
  }
  std::atomic<int> changing = 2;
  std::vector<std::thread> threads;
  for (int first = 1; first <= 2; ++first)
    threads.emplace_back([&, first] {
      for (int i = first; i <= kJobs; i += 2)
        hub.Call([&](MasterCore& core) { return core.Cancel("j" + std::to_string(i)).ok(); });
      --changing;
    });
  while (changing > 0) hub.Call([](MasterCore& core) { return core.Find("j1").ok(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(called_by_looking, 0);
  EXPECT_GE(called, kJobs) << "each end is told";
}

TEST(MasterHubTest, OrdersGoOutInOrderAndWhenTheyAreOnDisk) {
  const auto store = *JobStore::Open(":memory:", {}, SystemClock());
  CountingDisk disk(*store);
  MasterHub hub(disk, SystemClock(), {});
  ASSERT_TRUE(hub.Start().ok());
  const auto port = std::make_shared<Port>(disk);
  hub.Call([&](MasterCore& core) {
    WorkerDescription description;
    description.uuid = description.name = "w";
    description.instance = "1";
    description.threads = 3;
    hub.Connect("w", port);
    core.WorkerConnected(description, {});
    return true;
  });
  for (int i = 1; i <= 3; ++i) hub.Call([&](MasterCore& core) { return core.Submit(Specification(i)).ok(); });
  EXPECT_EQ(port->jobs, (std::vector<std::string>{"j1", "j2", "j3"}));
}

}  // namespace
}  // namespace heddle::cluster
