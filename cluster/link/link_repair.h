// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

namespace heddle::cluster {

/// When a broken stream is opened again, and when that is given up. Not thread-safe; knows no clock.
class LinkRepair {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  /// The stream broke. The deadline counts from the first break since it last stood. `calls`: this side opens
  /// it.
  void Break(int64_t now_ns, int64_t patience_ns, bool calls, const std::string& cause) {
    if (deadline_ns_ == kNever) {
      deadline_ns_ = now_ns + patience_ns;
      pause_ns_ = kFirstPauseNs;
    }
    cause_ = cause;
    call_ns_ = calls ? now_ns + pause_ns_ : kNever;
    pause_ns_ = std::min(2 * pause_ns_, kLongestPauseNs);
  }
  /// It stands. True if it had been broken.
  bool Mend() {
    const bool was_broken = IsBroken();
    *this = LinkRepair();
    return was_broken;
  }

  /// It stays broken; nothing will be due.
  void GiveUp() {
    given_up_ = true;
    deadline_ns_ = call_ns_ = kNever;
  }

  bool IsBroken() const { return given_up_ || deadline_ns_ != kNever; }
  bool IsHopeless(int64_t now_ns) const { return now_ns >= deadline_ns_; }
  /// True once after each break, when it is time to call.
  bool TakeCall(int64_t now_ns) {
    if (now_ns < call_ns_) return false;
    call_ns_ = kNever;
    return true;
  }
  int64_t NextNs() const { return std::min(deadline_ns_, call_ns_); }
  const std::string& cause() const { return cause_; }

 private:
  static constexpr int64_t kFirstPauseNs = 5'000'000;
  static constexpr int64_t kLongestPauseNs = 250'000'000;

  int64_t deadline_ns_ = kNever;
  int64_t call_ns_ = kNever;
  int64_t pause_ns_ = kFirstPauseNs;
  bool given_up_ = false;
  std::string cause_;
};

}  // namespace heddle::cluster
