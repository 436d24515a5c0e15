// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace heddle::cluster {

/// What has happened since the master was started. Plain data.
struct MasterCounts {
  /// Upper bounds, in seconds, of how long jobs waited for their first workers; one more for all above.
  static constexpr std::array<double, 7> kWaitBounds = {0.1, 1, 5, 30, 120, 600, 3600};

  int64_t submitted = 0;
  int64_t attempts = 0;                            ///< That were started;
  int64_t crashes = 0;                             ///< that ended because an executor broke by itself,
  int64_t losses = 0;                              ///< or because a machine or process was taken away.
  std::map<std::string, int64_t> finished;         ///< Jobs, by state.
  std::map<std::string, int64_t> executors_ended;  ///< By how: "done", "code 70", "signal 9", "silent", ...
  int64_t workers_lost = 0;
  int64_t output_bytes = 0;  ///< Of standard output that was taken in.
  std::array<int64_t, kWaitBounds.size() + 1> waits{};
  double waits_sum_s = 0;

  void AddWait(double seconds) {
    size_t bucket = 0;
    while (bucket < kWaitBounds.size() && seconds > kWaitBounds[bucket]) ++bucket;
    ++waits[bucket];
    waits_sum_s += seconds;
  }
};

}  // namespace heddle::cluster
