// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/programs/plan.h"

namespace heddle::actor {

/// A kernel shorter than this hardly uses more than one thread: it may run beside one that fills the device.
constexpr int64_t kSerialKernelNs = 15'000;
/// A kernel longer than this would keep messages waiting for too long (runtime reference 1.4, B3).
constexpr int64_t kLongKernelNs = 50'000'000;

/// How long an act of one task takes: what the plan states, then what was measured. Kept with the plan from
/// run to run.
class LaunchEstimate {
 public:
  explicit LaunchEstimate(int64_t stated_ns) : ns_(stated_ns) {}

  /// A moving mean; one act that was slow for another reason (first touch, a busy machine) fades. What has no
  /// bound keeps none, however fast it was last time.
  void Measured(int64_t ns) {
    if (ns_ == kUnboundedCost) return;
    ns_ = has_measured_ ? ns_ + (ns - ns_) / 4 : ns;
    has_measured_ = true;
  }
  /// Whether the next act is worth two looks at the clock: where the time of acts is not known yet, and where
  /// it decides which thread they run on. What was found to take next to nothing is not measured again.
  bool WantsTime() const { return ns_ != kUnboundedCost && (!has_measured_ || ns_ > kSerialKernelNs); }
  /// Whether acts are known to be so short that a second thread would come too late to help.
  bool IsShort() const { return has_measured_ && ns_ != kUnboundedCost && ns_ <= kSerialKernelNs; }
  int64_t ns() const { return ns_; }
  bool IsLong() const { return ns_ > kLongKernelNs || ns_ == kUnboundedCost; }
  /// `device_is_busy`: the device computes already. Kernels that need it then queue for it, in order.
  bool NeedsDevice(bool device_is_busy) const {
    return IsLong() || (device_is_busy && ns_ > kSerialKernelNs);
  }

 private:
  int64_t ns_;
  bool has_measured_ = false;
};

}  // namespace heddle::actor
