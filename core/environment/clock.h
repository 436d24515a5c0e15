// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace heddle {

/// Time behind an interface, so that a simulation can own it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t MonotonicNs() = 0;  ///< Nanoseconds since some fixed moment; never goes back.
  virtual int64_t WallMs() = 0;       ///< Milliseconds since 1970-01-01 UTC.
};

/// The machine's clocks. Lives for ever; thread-safe.
Clock& SystemClock();

/// A clock that tests move by hand.
class VirtualClock : public Clock {
 public:
  int64_t MonotonicNs() override { return now_ns_; }
  int64_t WallMs() override { return now_ns_ / 1'000'000; }
  void Advance(int64_t ns) { now_ns_ += ns; }

 private:
  int64_t now_ns_ = 0;
};

}  // namespace heddle
