// SPDX-License-Identifier: Apache-2.0
#include <prometheus/collectable.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "cluster/metrics/metric_families.h"
#include "cluster/metrics/metrics_server.h"
#include "core/environment/clock.h"
#include "core/memory/memory_budget.h"
#include "core/version.h"

namespace heddle::cluster {
namespace {

constexpr double kUsOfSecond = 1e6;

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t OpenDescriptors() {
  std::error_code error;
  int64_t count = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end;
       entry.increment(error))
    ++count;
  return count;
}

double ProcessorSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / kUsOfSecond;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

class OwnProcess : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override {
    MetricFamilies metrics;
    metrics.Gauge("process_resident_memory_bytes", "Memory of the process that is in RAM.",
                  static_cast<double>(ResidentBytes()));
    metrics.Counter("process_cpu_seconds_total", "Processor time of the process.", ProcessorSeconds());
    metrics.Gauge("process_open_fds", "Open file descriptors.", static_cast<double>(OpenDescriptors()));
    metrics.Gauge("process_start_time_seconds", "When the process began, in seconds since 1970.",
                  static_cast<double>(started_ms_) / 1e3);
    const MemoryBudget& memory = MemoryBudget::Process();
    metrics.Gauge("heddle_memory_used_bytes", "Memory that the process counts against its limit.",
                  static_cast<double>(memory.used()));
    metrics.Gauge("heddle_memory_limit_bytes", "The limit of --memory, or what the machine has.",
                  static_cast<double>(memory.limit()));
    metrics.Gauge("heddle_build_info", "Always 1; the version is the label.", 1, {{"version", kVersion}});
    return metrics.Take();
  }

 private:
  const int64_t started_ms_ = SystemClock().WallMs();
};

}  // namespace

std::shared_ptr<prometheus::Collectable> ProcessMetrics() { return std::make_shared<OwnProcess>(); }

}  // namespace heddle::cluster
