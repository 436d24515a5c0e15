// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/worker_executors.h"

#include <algorithm>

#include "cluster/executor/executor_log.h"
#include "cluster/executor/executor_messages.h"
#include "cluster/executor/lease_clock.h"
#include "cluster/master/message_limits.h"
#include "cluster/placement/device_of_job.h"
#include "cluster/store/packed_text.h"
#include "core/environment/clock.h"
#include "core/environment/log.h"

namespace heddle::cluster {
namespace {

constexpr size_t kReportBytes = 256 << 10;
constexpr size_t kReportedCheckpoints = 4;
constexpr int64_t kProgressPauseNs = 1'000'000'000;

// What a process with a budget of memory may take in all: the reverse of MemoryBounds::DefaultLimit.
constexpr double kHeapOverhead = 1.15;
constexpr int64_t kReserveBytes = int64_t{64} << 20;
// What counts as private memory without being in use: stacks of threads, arenas of the heap, tables.
constexpr int64_t kAddressReserveBytes = int64_t{512} << 20;
// What the driver of a device and its compiler take of a process, beside what kernels are given.
constexpr int64_t kDriverBytes = int64_t{1} << 30;
constexpr int64_t kStackBytes = int64_t{16} << 20;  // of a thread of kernels, with what belongs to it

int64_t MemoryOfProcess(int64_t budget_bytes) {
  return static_cast<int64_t>(kHeapOverhead * static_cast<double>(budget_bytes)) + kReserveBytes;
}

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
  if (order.has_forget()) {
    Forget(key);
    // Of all attempts of a job that has ended: they go behind its executor here.
    if (!order.checkpoints().empty()) remover_.Remove(order.checkpoints_place(), order.checkpoints());
    return;
  }
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
  const Result<LauncherMessage> message = ParseLauncherMessage(order.has_peers()        ? order.peers()
                                                               : order.has_checkpoint() ? order.checkpoint()
                                                                                        : order.cancel());
  if (!message.ok()) return;
  if (message->checkpoint) process->Send(*message->checkpoint);
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
  start.no_device = WhyNoDevice(start.options.devices);
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
  record->news.output_offset = start.checkpoints.printed;
  {
    const std::lock_guard lock(mutex_);
    if (!records_.emplace(key, record).second) return;
  }
  int log_fd = -1;
  if (!options_.log_folder.empty()) {
    Result<std::unique_ptr<ExecutorLog>> log = ExecutorLog::Open(
        options_.log_folder, fmt::format("{}-{}-{}", start.job, start.attempt, start.options.rank),
        // The log belongs to the record and ends first.
        [this, to = record.get()](std::string_view text) { OnLog(*to, text); });
    if (log.ok()) {
      record->log = *std::move(log);
      log_fd = record->log->write_end();
    } else {
      HEDDLE_LOG(kWarning, "no log of an executor", {"job", start.job}, {"error", log.status()});
    }
  }
  const std::string group = Confine(&start);
  // Orders come one at a time, so that nobody asks for the process before it is here. Its events may come
  // earlier.
  const Status sound = CheckStart(start);
  Result<std::unique_ptr<ExecutorProcess>> started =
      sound.ok() ? ExecutorProcess::Start(start, EventsOf(record), "", log_fd, group) : sound;
  if (record->log != nullptr) record->log->CloseWriteEnd();
  const std::shared_ptr<ExecutorProcess> process = started.ok() ? *std::move(started) : nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (record->forgotten) return;  // the worker ends; so does the process, here
    if (process != nullptr) {
      record->process = process;
      record->news.pid = process->pid();
      ++counts_.started;
    } else {
      record->news.failure = started.status();
      ++counts_.ended["not started"];
    }
  }
  HEDDLE_LOG(kInfo, "executor started", {"job", start.job}, {"attempt", start.attempt},
             {"rank", start.options.rank}, {"pid", process != nullptr ? process->pid() : 0});
  changed_();
}

// Whatever the master says.
std::string WorkerExecutors::WhyNoDevice(const std::string& devices) const {
  const std::string device = DeviceIn(devices);
  if (device.empty() || device == options_.device) return "";
  return options_.device.empty()
             ? "the worker offers no device (heddle worker --devices)"
             : fmt::format("the worker offers {} alone (heddle worker --devices)", options_.device);
}

// Holds an executor to its share: the folder of its control group, or "" and a limit that it sets itself.
std::string WorkerExecutors::Confine(ExecutorStart* start) const {
  const int64_t budget = start->options.memory_bytes;
  const bool has_device = start->options.devices != "cpu" && start->no_device.empty();
  const int64_t most_bytes = MemoryOfProcess(budget) + (has_device ? kDriverBytes : 0);
  if (options_.groups != nullptr) {
    const Result<std::string> group = options_.groups->Make(
        fmt::format("executor-{}-{}-{}", start->job, start->attempt, start->options.rank),
        {.memory_bytes = budget > 0 ? most_bytes : 0, .threads = start->options.threads});
    if (group.ok()) return *group;
    HEDDLE_LOG(kWarning, "no control group of an executor", {"job", start->job}, {"error", group.status()});
  }
  if (budget > 0)
    start->data_bytes = most_bytes + kAddressReserveBytes + start->options.threads * kStackBytes;
  return "";
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
  events.progress = [this, record](const std::string& json) { OnProgress(*record, json); };
  events.record = [this, record](const std::string& json) {
    Result<std::string> packed = Pack(json);
    if (!packed.ok()) return;  // the job has no report
    const std::lock_guard lock(mutex_);
    record->news.record = *std::move(packed);
  };
  events.checkpoint = [this, record](const engine::WrittenCheckpoint& written) {
    {
      const std::lock_guard lock(mutex_);
      std::vector<engine::WrittenCheckpoint>& all = record->news.checkpoints;
      if (all.size() >= kReportedCheckpoints) all.erase(all.begin());
      all.push_back(written);
      record->checkpoints_sent = false;
    }
    changed_();
  };
  events.done = [this, record](const ExecutorDone& done) {
    {
      const std::lock_guard lock(mutex_);
      record->news.done = done;
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
      ++counts_.ended[exit.Kind()];
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
    counts_.output_bytes += static_cast<int64_t>(text.size());
  }
  changed_();
}

void WorkerExecutors::OnLog(Record& record, std::string_view text) {
  {
    const std::lock_guard lock(mutex_);
    record.stderr_tail.Append(text);
  }
  changed_();
}

// An executor tells more often than users look at jobs.
void WorkerExecutors::OnProgress(Record& record, const std::string& json) {
  {
    const std::lock_guard lock(mutex_);
    const int64_t now_ns = SystemClock().MonotonicNs();
    if (json == record.news.progress || now_ns - record.progress_told_ns < kProgressPauseNs) return;
    record.news.progress = json;
    record.progress_told_ns = now_ns;
    record.progress_due = true;
  }
  changed_();
}

void WorkerExecutors::OnRemoved(const std::string& folder) {
  {
    const std::lock_guard lock(mutex_);
    removed_.push_back(folder);
  }
  changed_();
}

// Told once: the master asks again where it does not hear of it.
std::optional<std::string> WorkerExecutors::NextRemoved() {
  const std::lock_guard lock(mutex_);
  if (removed_.empty()) return std::nullopt;
  std::string folder = std::move(removed_.back());
  removed_.pop_back();
  return folder;
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

WorkerExecutors::Counts WorkerExecutors::counts() {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  for (const auto& [key, record] : records_) {
    counts.running += record->process != nullptr && !record->news.exit ? 1 : 0;
    counts.buffered_bytes += static_cast<int64_t>(record->news.output.size());
  }
  return counts;
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
    record->checkpoints_sent = false;
    record->stderr_sent = 0;
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
    if (!known.checkpoints.empty() && !record->checkpoints_sent) {
      record->checkpoints_sent = true;
      report.checkpoints = known.checkpoints;
      return report;
    }
    if (record->stderr_tail.end() > record->stderr_sent) {
      report.log = record->stderr_tail.From(record->stderr_sent);
      report.log_offset = record->stderr_tail.end() - static_cast<int64_t>(report.log.size());
      record->stderr_sent = record->stderr_tail.end();
      return report;
    }
    if (std::exchange(record->progress_due, false)) {
      report.progress = known.progress;
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
      report.record = known.record;
      report.exit = known.exit;
      report.failure = known.failure;
      return report;
    }
  }
  return std::nullopt;
}

}  // namespace heddle::cluster
