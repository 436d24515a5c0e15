// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace heddle::actor {

/// How long a thread takes for its messages, kernels left out: 99.9 % of them must be below a bound (I10).
/// The reference's 20 us are those of an optimized build; debug builds, the only ones that check, are allowed
/// 50 times as much, in CPU time of the thread, so that a busy machine is no fault.
class MessageTimes {
 public:
  static constexpr int64_t kBoundNs = 50 * 20'000;
  static constexpr int64_t kAlwaysAllowed = 50;

  void Add(int64_t ns) {
    ++messages_;
    slow_ += ns > kBoundNs;
  }
  /// Some slow messages are always allowed: pages and code touched first, large blocks given back.
  bool WithinBound() const { return slow_ <= std::max<int64_t>(kAlwaysAllowed, messages_ / 1000); }

 private:
  int64_t messages_ = 0;
  int64_t slow_ = 0;
};

}  // namespace heddle::actor
