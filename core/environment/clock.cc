// SPDX-License-Identifier: Apache-2.0
#include "core/environment/clock.h"

#include <time.h>

namespace heddle {
namespace {

class MachineClock : public Clock {
 public:
  int64_t MonotonicNs() override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
  int64_t WallMs() override {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  }
};

}  // namespace

Clock& SystemClock() {
  static MachineClock* clock =
      new MachineClock;  // Never destroyed: threads may still ask while the process ends.
  return *clock;
}

}  // namespace heddle
