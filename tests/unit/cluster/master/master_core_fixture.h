// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cluster/master/master_core.h"

namespace heddle::cluster {

using Kind = WorkerOrder::Kind;

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kTtlNs = 10 * kNsPerSecond;

/// A store whose disk is full while `full`.
class FullStore : public JobStore {
 public:
  explicit FullStore(JobStore& store) : store_(store) {}

  int64_t LastChange() const override { return store_.LastChange(); }
  void Sync() override { store_.Sync(); }
  Result<JobSpecification> Specification(const std::string& job) override {
    return store_.Specification(job);
  }
  Result<Job> Add(const JobSpecification& specification, bool* existed) override {
    if (full) return Refusal();
    return store_.Add(specification, existed);
  }
  Status Move(Job* job, JobState state, const std::string& reason) override {
    return full ? Refusal() : store_.Move(job, state, reason);
  }
  Status SetCheckpoints(const Job& job) override { return full ? Refusal() : store_.SetCheckpoints(job); }
  Status CheckWritable() override { return full ? Refusal() : store_.CheckWritable(); }
  Status AppendOutput(Job* job, std::string_view bytes) override {
    return full ? Refusal() : store_.AppendOutput(job, bytes);
  }
  Status SetDrained(const KnownWorker& worker, bool drained) override {
    return full ? Refusal() : store_.SetDrained(worker, drained);
  }
  Result<std::vector<KnownWorker>> Drained() override { return store_.Drained(); }
  Status SetHere(const KnownWorker& worker, bool here) override {
    return full ? Refusal() : store_.SetHere(worker, here);
  }
  Result<std::vector<KnownWorker>> Here() override { return store_.Here(); }
  Status SetUsage(const UserUsage& usage) override { return full ? Refusal() : store_.SetUsage(usage); }
  Result<std::vector<UserUsage>> Usage() override { return store_.Usage(); }
  Result<std::string> Identity() override { return store_.Identity(); }
  Result<int64_t> LastJob() override { return store_.LastJob(); }
  Result<int64_t> LastEpoch() override { return store_.LastEpoch(); }
  Result<std::vector<Job>> Load() override { return store_.Load(); }
  Result<std::vector<JobTransition>> Transitions(const std::string& job) override {
    return store_.Transitions(job);
  }
  Result<std::string> Output(const std::string& job, int64_t offset, int64_t most_bytes) override {
    return store_.Output(job, offset, most_bytes);
  }
  Result<std::vector<std::string>> Prune() override { return store_.Prune(); }
  Status Delete(const std::string& job) override { return full ? Refusal() : store_.Delete(job); }
  JobFiles& files() override { return store_.files(); }

  bool full = false;

 private:
  static Status Refusal() { return ResourceExhausted("job store: the disk is full"); }
  JobStore& store_;
};

/// Whose time of day somebody sets while the machine runs.
class SetClock : public VirtualClock {
 public:
  int64_t WallMs() override { return VirtualClock::WallMs() + moved_ms; }
  int64_t moved_ms = 0;
};

class MasterCoreTest : public testing::Test {
 protected:
  MasterCoreTest() : store_(*JobStore::Open(":memory:", {}, clock_)), disk_(*store_) { Restart(); }

  // As after kill -9: only the store is left.
  void Restart() {
    core_ = std::make_unique<MasterCore>(disk_, clock_, options_);
    EXPECT_TRUE(core_->Start().ok());
  }

  void Connect(const std::string& uuid, const std::string& instance = "1",
               const std::vector<ExecutorNews>& executors = {}) {
    WorkerDescription description;
    description.uuid = uuid;
    description.instance = instance;
    description.name = "worker-" + uuid;
    core_->WorkerConnected(description, executors);
  }
  std::string Submit(int workers, int64_t retry_for_ms = kDefaultRetryForMs) {
    JobSpecification specification;
    specification.request_id = "r" + std::to_string(++requests_);
    specification.workers_wanted = workers;
    specification.retry_for_ms = retry_for_ms;
    return (*core_->Submit(specification))->id;
  }
  const Job& Get(const std::string& id) { return **core_->Find(id); }

  static ExecutorNews News(const Job& job, int rank) {
    ExecutorNews news;
    news.job = job.id;
    news.attempt = job.attempt;
    news.epoch = job.epoch;
    news.rank = rank;
    news.pid = 100 + rank;
    return news;
  }
  void Ready(const std::string& id, int rank) {
    ExecutorNews news = News(Get(id), rank);
    news.endpoint = "endpoint" + std::to_string(rank);
    core_->News(Get(id).workers[static_cast<size_t>(rank)], news);
  }
  void Output(const std::string& id, int64_t offset, const std::string& text) {
    ExecutorNews news = News(Get(id), 0);
    news.output = text;
    news.output_offset = offset;
    core_->News(Get(id).workers[0], news);
  }
  void End(const std::string& id, int rank, const Status& status, bool own_cause = false) {
    ExecutorNews news = News(Get(id), rank);
    news.done = ExecutorDone{.status = status, .own_cause = own_cause};
    news.exit = ExecutorExit{};
    core_->News(Get(id).workers[static_cast<size_t>(rank)], news);
  }
  void Crash(const std::string& id, int rank, int number, const std::string& last_words = "") {
    ExecutorNews news = News(Get(id), rank);
    news.exit = ExecutorExit{100 + rank, true, number};
    news.exit->last_words = last_words;
    core_->News(Get(id).workers[static_cast<size_t>(rank)], news);
  }
  void RunUntilRunning(const std::string& id) {
    for (size_t rank = 0; rank < Get(id).workers.size(); ++rank) Ready(id, static_cast<int>(rank));
    EXPECT_EQ(Get(id).state, JobState::kRunning);
  }
  // Time passes as the master sees it: it is awake when it wants to be. `alive` speak now and then.
  void Pass(int64_t ns, const std::vector<std::string>& alive = {}) {
    for (const int64_t end = clock_.MonotonicNs() + ns; clock_.MonotonicNs() < end;) {
      for (const std::string& uuid : alive) core_->WorkerHeard(uuid);
      clock_.Advance(
          std::clamp<int64_t>(core_->NextDeadline() - clock_.MonotonicNs(), 1, end - clock_.MonotonicNs()));
      core_->Tick();
    }
  }
  // The orders of a kind that were given since the last look.
  std::vector<WorkerOrder> Take(Kind kind) {
    std::vector<WorkerOrder> orders = core_->TakeOrders();
    std::erase_if(orders, [&](const WorkerOrder& order) { return order.kind != kind; });
    return orders;
  }
  void Ask(const ExecutorNews& executor, const std::string& uuid, int64_t id) {
    ExecutorNews news = executor;
    news.commit = CommitQuestion{id, "out.csv", 1000 + id};
    core_->News(uuid, news);
  }
  size_t Count(Kind kind) {
    size_t count = 0;
    for (const WorkerOrder& order : core_->TakeOrders()) count += order.kind == kind ? 1 : 0;
    return count;
  }

  MasterCoreOptions options_;
  SetClock clock_;
  std::unique_ptr<JobStore> store_;
  FullStore disk_;
  std::unique_ptr<MasterCore> core_;
  int requests_ = 0;
};

}  // namespace heddle::cluster
