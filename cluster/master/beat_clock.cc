// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/beat_clock.h"

#include <algorithm>

namespace heddle::cluster {

BeatClock::BeatClock(Clock& clock, int64_t beat_ns)
    : clock_(clock),
      beat_ns_(std::max<int64_t>(beat_ns, 1)),
      last_ns_(clock.MonotonicNs()),
      counted_ns_(last_ns_) {}

bool BeatClock::Count() {
  const int64_t passed_ns = clock_.MonotonicNs() - last_ns_;
  last_ns_ += passed_ns;
  counted_ns_ += std::min(passed_ns, beat_ns_);
  return passed_ns > kPauseBeats * beat_ns_;
}

int64_t BeatClock::NextCount(int64_t moment_ns) const {
  if (moment_ns == kNever) return kNever;
  return last_ns_ + std::clamp<int64_t>(moment_ns - counted_ns_, 0, beat_ns_);
}

}  // namespace heddle::cluster
