// SPDX-License-Identifier: Apache-2.0
#include "cluster/executor/lease_clock.h"

#include <time.h>

namespace heddle::cluster {
namespace {

class ClockSinceBoot : public Clock {
 public:
  int64_t MonotonicNs() override {
    timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
  int64_t WallMs() override { return SystemClock().WallMs(); }
};

}  // namespace

Clock& LeaseClock() {
  static ClockSinceBoot* clock = new ClockSinceBoot;  // never destroyed, as SystemClock()
  return *clock;
}

}  // namespace heddle::cluster
