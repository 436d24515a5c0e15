// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/worker_metrics.h"

#include <prometheus/collectable.h>

#include <utility>

#include "cluster/metrics/metric_families.h"

namespace heddle::cluster {
namespace {

class OfWorker : public prometheus::Collectable {
 public:
  OfWorker(WorkerExecutors* executors, int threads, int64_t memory_bytes, std::function<bool()> is_connected)
      : executors_(executors),
        threads_(threads),
        memory_bytes_(memory_bytes),
        is_connected_(std::move(is_connected)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    const WorkerExecutors::Counts counts = executors_->counts();
    MetricFamilies metrics;
    metrics.Gauge("heddle_worker_connected", "1 while the worker has a master, else 0.",
                  is_connected_() ? 1 : 0);
    metrics.Gauge("heddle_worker_offered_threads", "Threads that the worker offers.", threads_);
    metrics.Gauge("heddle_worker_offered_memory_bytes", "Memory that it offers to an executor.",
                  static_cast<double>(memory_bytes_));
    metrics.Gauge("heddle_executors_running", "Executors that run.", static_cast<double>(counts.running));
    metrics.Counter("heddle_executors_started_total", "Executors that were started.",
                    static_cast<double>(counts.started));
    for (const auto& [how, count] : counts.ended)
      metrics.Counter("heddle_executor_exits_total", "Executors that have ended, by how.",
                      static_cast<double>(count), {{"how", how}});
    metrics.Counter("heddle_output_bytes_total", "Standard output of scripts.",
                    static_cast<double>(counts.output_bytes));
    metrics.Gauge("heddle_output_buffered_bytes", "Output that the master does not have yet.",
                  static_cast<double>(counts.buffered_bytes));
    return metrics.Take();
  }

 private:
  WorkerExecutors* const executors_;
  const int threads_;
  const int64_t memory_bytes_;
  const std::function<bool()> is_connected_;
};

}  // namespace

std::shared_ptr<prometheus::Collectable> WorkerMetrics(WorkerExecutors* executors, int threads,
                                                       int64_t memory_bytes,
                                                       std::function<bool()> is_connected) {
  return std::make_shared<OfWorker>(executors, threads, memory_bytes, std::move(is_connected));
}

}  // namespace heddle::cluster
