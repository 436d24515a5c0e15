// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "cluster/chaos/chaos.h"
#include "cluster/executor/executor_process.h"
#include "core/environment/random.h"

namespace heddle::cluster {

/// Uniform in (0, 1].
double UniformShare(RandomSource& random);
/// A time until the next of events that come at random, `mean` apart: exponentially distributed. In the unit
/// of `mean`.
double WaitOfMean(RandomSource& random, double mean);

/// Kills and stops the executors of one attempt at moments that its seed chooses: kills are exponentially
/// distributed, stops likewise with the longest pause as the mean time between two, for a uniformly
/// distributed time. All times between two are `rarer_by` as long. One thread; faults end when the object
/// goes, and who is stopped then goes on.
class FaultInjector {
 public:
  /// `processes`, by rank, outlive it. What happens is added to `report`, which nobody else touches
  /// meanwhile.
  FaultInjector(const Chaos& chaos, double rarer_by, std::vector<ExecutorProcess*> processes, int attempt,
                ChaosReport* report);
  ~FaultInjector();
  FaultInjector(const FaultInjector&) = delete;

 private:
  struct Stopped {
    size_t rank;
    int64_t until_ns;
    int64_t since_ns;
  };
  void Run();
  void Resume(int64_t now_ns, bool all);
  void Kill(int64_t now_ns);
  void Pause(int64_t now_ns);
  int64_t NextNs() const;

  const Chaos chaos_;
  const double rarer_by_;
  const std::vector<ExecutorProcess*> processes_;
  const int attempt_;
  ChaosReport* const report_;
  // One for each kind, so that the kills of a seed are the same with and without pauses.
  SeededRandom kill_random_;
  SeededRandom pause_random_;
  int64_t begin_ns_ = 0;
  int64_t kill_ns_ = 0;
  int64_t pause_ns_ = 0;
  std::vector<Stopped> stopped_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace heddle::cluster
