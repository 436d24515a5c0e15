// SPDX-License-Identifier: Apache-2.0
#include "engine/control/background_measurement.h"

#include <system_error>

#include "core/environment/clock.h"
#include "engine/session/statistics.h"

namespace heddle::engine {

BackgroundMeasurement::BackgroundMeasurement(ConstantsCache cache, MakeWork make_work, Clock* clock)
    : cache_(std::move(cache)),
      make_work_(std::move(make_work)),
      clock_(clock != nullptr ? *clock : SystemClock()) {}

BackgroundMeasurement::~BackgroundMeasurement() {
  if (thread_.joinable()) thread_.join();
}

bool BackgroundMeasurement::StartBehind(const SessionStatistics& job, int threads) {
  if (job.bytes_moved <= kBytesMoved || !cache_.IsUsable()) return false;
  const std::string key = MachineKey(threads);
  if (cache_.Find(key)) return false;
  try {
    thread_ = std::thread([this, key, threads] {
      const std::unique_ptr<ProbeWork> work = make_work_(threads);
      if (work == nullptr) return;
      if (const auto constants = MeasureMachine(*work, threads, clock_)) cache_.Store(key, *constants);
    });
  } catch (const std::system_error&) {
    return false;  // a machine without a thread to spare
  }
  return true;
}

}  // namespace heddle::engine
