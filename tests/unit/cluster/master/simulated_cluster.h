// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/master/master_core.h"
#include "core/environment/random.h"

namespace heddle::cluster {

/// A master's core with workers whose executors are entries of a table, on a clock that jumps. Checks with
/// every order that no worker has more executors than it offers room for.
class SimulatedCluster {
 public:
  static constexpr int64_t kSecond = 1'000'000'000;
  static constexpr int64_t kHeartbeat = 2 * kSecond;

  struct Node {
    WorkerDescription description;
    bool connected = false;
    int64_t beats_at = 0;
  };
  struct Executor {
    std::string worker;
    ExecutorNews news;  // identity
    Share share;
    bool linked = false;
    int64_t ends_at = INT64_MAX;
  };
  using Key = std::pair<std::string, std::string>;  // worker, job

  explicit SimulatedCluster(uint64_t seed) : random(seed), store(*JobStore::Open(":memory:", {}, clock)) {
    Restart();
  }

  /// As after kill -9 of the master: only the store is left. Workers come back.
  void Restart() {
    core = std::make_unique<MasterCore>(*store, clock, options);
    ASSERT_TRUE(core->Start().ok());
    for (auto& [uuid, node] : nodes)
      if (node.connected) Connect(uuid);
    Obey();
  }

  void AddWorker(const std::string& name, int threads, int64_t memory_bytes, int slots) {
    Node& node = nodes[name];
    node.description.uuid = node.description.name = name;
    node.description.threads = threads;
    node.description.memory_bytes = memory_bytes;
    node.description.slots = slots;
    node.description.instance = "0";
    Connect(name);
    Obey();
  }
  void Connect(const std::string& uuid) {
    Node& node = nodes[uuid];
    node.connected = true;
    node.beats_at = clock.MonotonicNs() + kHeartbeat;
    std::vector<ExecutorNews> news;
    for (const auto& [key, executor] : executors)
      if (executor.worker == uuid) news.push_back(executor.news);
    core->WorkerConnected(node.description, news);
  }
  /// The machine goes away, with all that runs on it.
  void KillWorker(const std::string& uuid) {
    Node& node = nodes[uuid];
    node.connected = false;
    node.description.instance = std::to_string(++instances);
    std::erase_if(executors, [&](const auto& entry) { return entry.second.worker == uuid; });
    core->WorkerDisconnected(uuid);
  }

  std::string Submit(JobSpecification specification) {
    specification.request_id = "r" + std::to_string(++requests);
    const Result<const Job*> job = core->Submit(specification);
    EXPECT_TRUE(job.ok()) << job.status().ToString();
    const std::string id = job.ok() ? (*job)->id : "";
    Obey();
    return id;
  }
  const Job& Get(const std::string& id) { return **core->Find(id); }

  /// How long the executors of a job run: the same for all of them.
  int64_t DurationOf(const std::string& job) const {
    const auto found = durations.find(job);
    return found == durations.end() ? kSecond : found->second;
  }

  /// Does what the master wants done, until it wants nothing more.
  void Obey() {
    for (std::vector<WorkerOrder> orders = core->TakeOrders(); !orders.empty(); orders = core->TakeOrders())
      for (const WorkerOrder& order : orders) Obey(order);
  }

  /// The next thing that happens by itself, at `until` at the latest.
  void Step(int64_t until) {
    int64_t next = std::min(until, core->NextDeadline());
    for (const auto& [uuid, node] : nodes)
      if (node.connected) next = std::min(next, node.beats_at);
    for (const auto& [key, executor] : executors) next = std::min(next, executor.ends_at);
    clock.Advance(std::max<int64_t>(0, next - clock.MonotonicNs()));
    const int64_t now = clock.MonotonicNs();
    for (auto& [uuid, node] : nodes) {
      if (!node.connected || node.beats_at > now) continue;
      node.beats_at = now + kHeartbeat;
      if (!core->WorkerHeard(uuid)) Connect(uuid);
      Obey();
    }
    std::vector<Key> ended;
    for (const auto& [key, executor] : executors)
      if (executor.ends_at <= now) ended.push_back(key);
    for (const Key& key : ended)
      if (executors.contains(key)) End(key, OkStatus(), 0);
    core->Tick();
    Obey();
  }
  void RunUntil(int64_t time) {
    while (clock.MonotonicNs() < time) Step(time);
  }
  bool AllEnded() {
    for (const Job* job : core->Jobs())
      if (!IsFinal(job->state)) return false;
    return true;
  }

  /// An executor ends: by itself with a status, or by a signal.
  void End(const Key& key, const Status& status, int signal) {
    const auto found = executors.find(key);
    ExecutorNews news = found->second.news;
    if (signal == 0) news.done = ExecutorDone{.status = status, .own_cause = false};
    news.exit = ExecutorExit{};
    news.exit->signalled = signal != 0;
    news.exit->value = signal;
    executors.erase(found);
    if (nodes[key.first].connected) core->News(key.first, news);
    Obey();
  }

  VirtualClock clock;
  SeededRandom random;
  MasterCoreOptions options;
  std::unique_ptr<JobStore> store;
  std::unique_ptr<MasterCore> core;
  std::map<std::string, Node> nodes;
  std::map<Key, Executor> executors;
  std::map<std::string, int64_t> durations;  // of jobs
  std::map<std::string, int> starts;         // executors of each job that were started
  int requests = 0;
  int instances = 0;

 private:
  void Obey(const WorkerOrder& order) {
    if (!nodes[order.worker].connected) return;
    const Key key(order.worker, order.job);
    const auto found = executors.find(key);
    const bool is_there = found != executors.end() && found->second.news.attempt == order.attempt;
    switch (order.kind) {
      case WorkerOrder::Kind::kStart: return Start(key, *order.message.start);
      case WorkerOrder::Kind::kPeers:
        if (!is_there || found->second.linked) return;
        found->second.linked = true;
        found->second.ends_at = clock.MonotonicNs() + DurationOf(order.job);
        return;
      case WorkerOrder::Kind::kCancel:
        if (is_there) End(key, *order.message.cancel, 0);
        return;
      case WorkerOrder::Kind::kKill:
        if (is_there) End(key, OkStatus(), SIGKILL);
        return;
      case WorkerOrder::Kind::kForget:
        if (is_there) executors.erase(found);
        return;
      case WorkerOrder::Kind::kCheckpoint:
      case WorkerOrder::Kind::kOutputUntil:
      case WorkerOrder::Kind::kCommit:
      case WorkerOrder::Kind::kSweep: return;
    }
  }

  void Start(const Key& key, const ExecutorStart& start) {
    if (executors.contains(key)) {
      EXPECT_EQ(executors[key].news.attempt, start.attempt) << "the one before is gone by then";
      return;
    }
    Executor& executor = executors[key];
    executor.worker = key.first;
    executor.share = {start.options.threads, start.options.memory_bytes};
    executor.news.job = start.job;
    executor.news.attempt = start.attempt;
    executor.news.epoch = start.epoch;
    executor.news.rank = start.options.rank;
    executor.news.pid = 1;
    ++starts[start.job];
    CheckRoom(key.first);
    ExecutorNews ready = executor.news;
    ready.endpoint = executor.news.endpoint = "endpoint";
    core->News(key.first, ready);
  }

  // Never more than is offered, of what really runs.
  void CheckRoom(const std::string& uuid) {
    const WorkerDescription& offers = nodes[uuid].description;
    int threads = 0;
    int64_t bytes = 0;
    for (const auto& [key, executor] : executors) {
      if (executor.worker != uuid) continue;
      threads += executor.share.threads;
      bytes += executor.share.memory_bytes;
    }
    EXPECT_LE(threads, offers.threads) << uuid;
    if (offers.memory_bytes > 0) {
      EXPECT_LE(bytes, offers.memory_bytes) << uuid;
    }
  }
};

}  // namespace heddle::cluster
