// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "engine/machine/machine_constants.h"
#include "engine/machine/machine_probe.h"

namespace heddle::engine {

struct SessionStatistics;

/// Measures the machine once, behind a job that has moved enough for a measurement not to matter: when its
/// results are out, and beside what its process still has to do. What was measured is for later jobs.
class BackgroundMeasurement {
 public:
  /// Of one job. Less is not worth it.
  static constexpr int64_t kBytesMoved = 1'000'000'000;
  using MakeWork = std::function<std::unique_ptr<ProbeWork>(int threads)>;

  /// `clock` nullptr: the machine's.
  explicit BackgroundMeasurement(ConstantsCache cache = ConstantsCache(), MakeWork make_work = MakeProbeWork,
                                 Clock* clock = nullptr);
  /// Waits for the measurement: some tens of milliseconds.
  ~BackgroundMeasurement();

  /// Starts it if the job of these statistics has moved more than kBytesMoved and nothing is known of this
  /// machine with so many threads; whether it was started. Returns at once; at most one call.
  bool StartBehind(const SessionStatistics& job, int threads);

 private:
  const ConstantsCache cache_;
  const MakeWork make_work_;
  Clock& clock_;
  std::thread thread_;
};

}  // namespace heddle::engine
