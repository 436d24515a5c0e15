// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/master_metrics.h"

#include <prometheus/collectable.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "cluster/metrics/metric_families.h"

namespace heddle::cluster {
namespace {

constexpr double kMsOfSecond = 1e3;

class OfMaster : public prometheus::Collectable {
 public:
  explicit OfMaster(MasterHub* hub) : hub_(hub) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    MetricFamilies metrics;
    hub_->Call([&](MasterCore& core) {
      AddJobs(core, &metrics);
      AddCounts(core.counts(), &metrics);
      AddWorkers(core, &metrics);
      return true;
    });
    return metrics.Take();
  }

 private:
  void AddJobs(const MasterCore& core, MetricFamilies* metrics) const {
    std::map<JobState, int64_t> by_state;
    for (int state = 0; state <= static_cast<int>(JobState::kCancelled); ++state)
      by_state[static_cast<JobState>(state)] = 0;
    int64_t waiting = 0, oldest_ms = 0, output_bytes = 0;
    const int64_t now_ms = hub_->clock().WallMs();
    for (const Job* job : core.Jobs()) {
      ++by_state[job->state];
      output_bytes += job->output_bytes;
      if (job->state != JobState::kQueued) continue;
      ++waiting;
      oldest_ms = std::max(oldest_ms, now_ms - job->submitted_ms);
    }
    for (const auto& [state, count] : by_state)
      metrics->Gauge("heddle_jobs", "Jobs that the master knows, by state.", static_cast<double>(count),
                     {{"state", std::string(Name(state))}});
    metrics->Gauge("heddle_queue_length", "Jobs that wait for their first workers.",
                   static_cast<double>(waiting));
    metrics->Gauge("heddle_queue_oldest_seconds", "How long the oldest of them has waited.",
                   static_cast<double>(oldest_ms) / kMsOfSecond);
    metrics->Gauge("heddle_job_output_bytes", "Standard output of jobs that is kept.",
                   static_cast<double>(output_bytes));
    metrics->Gauge("heddle_store_ready", "1 while transitions of jobs can be stored, else 0.",
                   core.store_status().ok() ? 1 : 0);
  }

  static void AddCounts(const MasterCounts& counts, MetricFamilies* metrics) {
    const auto add = [&](const std::string& name, const std::string& help, int64_t value) {
      metrics->Counter(name, help, static_cast<double>(value));
    };
    add("heddle_jobs_submitted_total", "Jobs that were taken in since the master began.", counts.submitted);
    for (const JobState state : {JobState::kSucceeded, JobState::kFailed, JobState::kCancelled}) {
      const auto found = counts.finished.find(std::string(Name(state)));
      metrics->Counter("heddle_jobs_finished_total", "Jobs that have ended, by state.",
                       static_cast<double>(found == counts.finished.end() ? 0 : found->second),
                       {{"state", std::string(Name(state))}});
    }
    add("heddle_job_attempts_total", "Attempts of jobs that were started.", counts.attempts);
    add("heddle_job_crashes_total", "Attempts that ended because an executor broke by itself.",
        counts.crashes);
    add("heddle_job_losses_total", "Attempts that ended because a machine or process was taken away.",
        counts.losses);
    add("heddle_workers_lost_total", "Workers that left or fell silent.", counts.workers_lost);
    add("heddle_output_bytes_total", "Standard output that was taken in.", counts.output_bytes);
    for (const auto& [how, count] : counts.executors_ended)
      metrics->Counter("heddle_executor_exits_total", "Executors that have ended, by how.",
                       static_cast<double>(count), {{"how", how}});
    metrics->Histogram("heddle_queue_wait_seconds", "How long jobs waited for their first workers.",
                       {MasterCounts::kWaitBounds.begin(), MasterCounts::kWaitBounds.end()},
                       {counts.waits.begin(), counts.waits.end()}, counts.waits_sum_s);
  }

  static void AddWorkers(const MasterCore& core, MetricFamilies* metrics) {
    constexpr std::array kStates = {WorkerState::kAlive, WorkerState::kSuspect, WorkerState::kLost};
    std::map<WorkerState, int64_t> by_state;
    int64_t drained = 0, threads = 0, busy_threads = 0, bytes = 0, busy_bytes = 0;
    for (const auto& [uuid, worker] : core.membership().workers()) {
      ++by_state[worker.state];
      drained += worker.drained ? 1 : 0;
      if (worker.state == WorkerState::kLost) continue;
      threads += worker.description.threads;
      bytes += worker.description.memory_bytes;
      const Share reserved = worker.Reserved();
      busy_threads += reserved.threads;
      busy_bytes += reserved.memory_bytes;
    }
    for (const WorkerState state : kStates)
      metrics->Gauge("heddle_workers", "Workers, by state.", static_cast<double>(by_state[state]),
                     {{"state", std::string(Name(state))}});
    metrics->Gauge("heddle_workers_drained", "Workers that get no new job.", static_cast<double>(drained));
    const auto add = [&](const std::string& name, const std::string& help, int64_t offered,
                         int64_t reserved) {
      metrics->Gauge(name, help, static_cast<double>(offered), {{"kind", "offered"}});
      metrics->Gauge(name, help, static_cast<double>(reserved), {{"kind", "reserved"}});
    };
    add("heddle_worker_threads", "Threads that workers offer, and those that jobs have of them.", threads,
        busy_threads);
    add("heddle_worker_memory_bytes", "Memory that workers offer, and what jobs have of it.", bytes,
        busy_bytes);
  }

  MasterHub* const hub_;
};

}  // namespace

std::shared_ptr<prometheus::Collectable> MasterMetrics(MasterHub* hub) {
  return std::make_shared<OfMaster>(hub);
}

}  // namespace heddle::cluster
