// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "core/environment/clock.h"

namespace heddle::cluster {

/// Time as somebody counts it who may be stopped without knowing: whoever waits for others must not take the
/// time in which he himself was away (stopped, suspended, starved) for their silence.
///
/// The owner counts at least once a beat while he waits for something. However long it was since the last
/// time, at most one beat is counted. Not thread-safe.
class BeatClock {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  /// `clock` outlives it.
  BeatClock(Clock& clock, int64_t beat_ns);

  /// Counts what has passed. True after a pause of more than kPauseBeats.
  bool Count();
  /// As of the last Count().
  int64_t now_ns() const { return counted_ns_; }
  /// When to count next, in time of the clock, so as not to miss a moment of counted time; kNever for kNever.
  int64_t NextCount(int64_t moment_ns) const;

 private:
  static constexpr int64_t kPauseBeats = 4;

  Clock& clock_;
  const int64_t beat_ns_;
  int64_t last_ns_;
  int64_t counted_ns_;
};

}  // namespace heddle::cluster
