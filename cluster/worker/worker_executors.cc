// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/worker_executors.h"

#include <algorithm>

#include "cluster/executor/executor_log.h"
#include "cluster/executor/executor_messages.h"
#include "cluster/executor/lease_clock.h"
#include "cluster/master/message_limits.h"
#include "core/environment/log.h"

namespace heddle::cluster {
namespace {

constexpr size_t kReportBytes = 256 << 10;

}  // namespace

WorkerExecutors::WorkerExecutors(const WorkerExecutorsOptions& options, std::function<void()> changed)
    : options_(options), changed_(std::move(changed)) {}

WorkerExecutors::~WorkerExecutors() { KillAll(); }

void WorkerExecutors::KillAll() {
  std::vector<Key> keys;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, record] : records_) keys.push_back(key);
  }
  for (const Key& key : keys) Forget(key);
}

std::shared_ptr<WorkerExecutors::Record> WorkerExecutors::Find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(key);
  return found == records_.end() ? nullptr : found->second;
}

void WorkerExecutors::Obey(const ExecutorOrder& order) {
  if (const Status status = CheckMessage(order); !status.ok()) return Refuse(order, status);
  const Key key(order.job(), order.attempt());
  if (order.has_start()) {
    Result<LauncherMessage> message = ParseLauncherMessage(order.start());
    if (message.ok() && !message->start) message = DataLoss("an order to start an executor says not how");
    return message.ok() ? Start(key, *message) : Refuse(order, message.status());
  }
  if (order.has_forget()) return Forget(key);
  const std::shared_ptr<Record> record = Find(key);
  if (record == nullptr) return;
  if (order.has_output_until()) {
    {
      const std::lock_guard lock(mutex_);
      ExecutorNews& news = record->news;
      const int64_t drop = std::clamp<int64_t>(order.output_until() - news.output_offset, 0,
                                               static_cast<int64_t>(news.output.size()));
      news.output.erase(0, static_cast<size_t>(drop));
      news.output_offset += drop;
      record->output_sent = false;
    }
    drained_.notify_all();
    changed_();
    return;
  }
  std::shared_ptr<ExecutorProcess> process;  // may be forgotten meanwhile
  {
    const std::lock_guard lock(mutex_);
    process = record->process;
  }
  if (process == nullptr) return;  // it could not be started
  if (order.has_kill()) return process->Kill();
  if (order.has_commit()) {
    // Counted from before the master answered, so that it ends here first.
    const ExecutorGrant grant = {order.commit().id(), order.commit().sent_ns() + order.commit().valid_ns()};
    {
      const std::lock_guard lock(mutex_);
      if (record->news.commit && record->news.commit->id == grant.id) record->news.commit.reset();
    }
    return process->Grant(grant);
  }
  const Result<LauncherMessage> message =
      ParseLauncherMessage(order.has_peers() ? order.peers() : order.cancel());
  if (!message.ok()) return;
  if (message->peers) process->SendPeers(*message->peers);
  if (message->cancel) process->Cancel(*message->cancel);
}

// The master is of the same version and trusted, so that this is a fault of ours.
void WorkerExecutors::Refuse(const ExecutorOrder& order, const Status& why) {
  HEDDLE_LOG(kError, "order refused", {"job", order.job()}, {"attempt", order.attempt()}, {"error", why});
}

void WorkerExecutors::Start(const Key& key, const LauncherMessage& message) {
  auto record = std::make_shared<Record>();
  ExecutorStart start = *message.start;
  if (start.options.threads <= 0) start.options.threads = options_.threads;
  start.listen = options_.listen;
  start.core_dumps = options_.core_dumps;
  start.shares_memory = options_.shares_memory;
  start.is_isolated = options_.isolates;
  start.runs_as_owner = options_.runs_as_owner;
  start.options.spill_folder = options_.spill_folder;  // The machine's, whatever the job says.
  start.roots.is_job = true;
  start.roots.own_folders = ops::FileRoots::OwnFolders::kClosed;
  start.roots.of_worker = options_.data_roots;
  start.roots.closed.insert(start.roots.closed.end(), options_.closed_paths.begin(),
                            options_.closed_paths.end());
  record->news.job = start.job;
  record->news.attempt = start.attempt;
  record->news.epoch = start.epoch;
  record->news.rank = start.options.rank;
  {
    const std::lock_guard lock(mutex_);
    if (!records_.emplace(key, record).second) return;
  }
  int log_fd = -1;
  if (!options_.log_folder.empty()) {
    Result<std::unique_ptr<ExecutorLog>> log = ExecutorLog::Open(
        options_.log_folder, fmt::format("{}-{}-{}", start.job, start.attempt, start.options.rank));
    if (log.ok()) {
      record->log = *std::move(log);
      log_fd = record->log->write_end();
    } else {
      HEDDLE_LOG(kWarning, "no log of an executor", {"job", start.job}, {"error", log.status()});
    }
  }
  // Orders come one at a time, so that nobody asks for the process before it is here. Its events may come
  // earlier.
  const Status sound = CheckStart(start);
  Result<std::unique_ptr<ExecutorProcess>> started =
      sound.ok() ? ExecutorProcess::Start(start, EventsOf(record), "", log_fd) : sound;
  if (record->log != nullptr) record->log->CloseWriteEnd();
  const std::shared_ptr<ExecutorProcess> process = started.ok() ? *std::move(started) : nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (record->forgotten) return;  // the worker ends; so does the process, here
    if (process != nullptr) {
      record->process = process;
      record->news.pid = process->pid();
    } else {
      record->news.failure = started.status();
    }
  }
  HEDDLE_LOG(kInfo, "executor started", {"job", start.job}, {"attempt", start.attempt},
             {"rank", start.options.rank}, {"pid", process != nullptr ? process->pid() : 0});
  changed_();
}

ExecutorEvents WorkerExecutors::EventsOf(const std::shared_ptr<Record>& record) {
  ExecutorEvents events;
  events.ready = [this, record](const std::string& endpoint, const std::string& certificate) {
    {
      const std::lock_guard lock(mutex_);
      record->news.endpoint = endpoint;
      record->news.certificate = certificate;
    }
    changed_();
  };
  events.output = [this, record](std::string_view text) { OnOutput(*record, text); };
  events.done = [this, record](const Status& status, bool own_cause,
                               std::optional<engine::SessionStatistics> statistics) {
    {
      const std::lock_guard lock(mutex_);
      record->news.done = ExecutorDone{status, own_cause, std::move(statistics)};
      record->end_sent = false;
    }
    changed_();
  };
  events.commit = [this, record](const ExecutorCommit& commit) {
    {
      const std::lock_guard lock(mutex_);
      record->news.commit = CommitQuestion{commit.id, commit.path, 0};
      record->commit_sent = false;
    }
    changed_();
  };
  events.exited = [this, record](ExecutorExit exit) {
    if (record->log != nullptr) {
      record->log->End(exit);
      exit.log = record->log->path();
      exit.last_words = record->log->last_line();
    }
    {
      const std::lock_guard lock(mutex_);
      record->news.exit = exit;
      record->news.pid = exit.pid;
      record->end_sent = false;
    }
    changed_();
  };
  return events;
}

// Holds the script back while the master is too far behind.
void WorkerExecutors::OnOutput(Record& record, std::string_view text) {
  {
    std::unique_lock lock(mutex_);
    drained_.wait(
        lock, [&] { return record.forgotten || record.news.output.size() < options_.most_buffered_bytes; });
    record.news.output.append(text);
  }
  changed_();
}

void WorkerExecutors::Forget(const Key& key) {
  std::shared_ptr<ExecutorProcess> process;
  {
    const std::lock_guard lock(mutex_);
    const auto found = records_.find(key);
    if (found == records_.end()) return;
    found->second->forgotten = true;
    // The process holds the record by its events; the cycle is cut here.
    process = std::move(found->second->process);
    records_.erase(found);
  }
  drained_.notify_all();
  if (process != nullptr) process->Kill();
  process.reset();  // waits for it
}

std::vector<ExecutorNews> WorkerExecutors::Introduce() {
  const std::lock_guard lock(mutex_);
  std::vector<ExecutorNews> all;
  for (auto& [key, record] : records_) {
    ExecutorNews news;
    news.job = record->news.job;
    news.attempt = record->news.attempt;
    news.epoch = record->news.epoch;
    news.rank = record->news.rank;
    news.pid = record->news.pid;
    news.endpoint = record->news.endpoint;
    news.certificate = record->news.certificate;
    all.push_back(std::move(news));
    record->ready_sent = record->news.endpoint.has_value();
    record->output_sent = false;
    record->end_sent = false;
    record->commit_sent = false;
  }
  return all;
}

std::optional<ExecutorNews> WorkerExecutors::NextReport() {
  const std::lock_guard lock(mutex_);
  for (auto& [key, record] : records_) {
    ExecutorNews& known = record->news;
    ExecutorNews report;
    report.job = known.job;
    report.attempt = known.attempt;
    report.epoch = known.epoch;
    report.rank = known.rank;
    report.pid = known.pid;
    if (known.endpoint && !record->ready_sent) {
      record->ready_sent = true;
      report.endpoint = known.endpoint;
      report.certificate = known.certificate;
      return report;
    }
    if (known.commit && !known.exit && !record->commit_sent) {
      record->commit_sent = true;
      report.commit = known.commit;
      report.commit->sent_ns = LeaseClock().MonotonicNs();
      return report;
    }
    if (record->output_sent) continue;
    if (!known.output.empty()) {
      record->output_sent = true;
      report.output = known.output.substr(0, kReportBytes);
      report.output_offset = known.output_offset;
      return report;
    }
    const bool ended = known.done || known.exit || !known.failure.ok();
    if (ended && !record->end_sent) {
      record->end_sent = true;
      report.done = known.done;
      report.exit = known.exit;
      report.failure = known.failure;
      return report;
    }
  }
  return std::nullopt;
}

}  // namespace heddle::cluster
