// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "core/status.h"

namespace heddle::cluster {

/// Where a server compiles scripts for others. A long script takes a processor for many seconds; so a few are
/// compiled at a time, each on a thread of its own that gives way to everything else, a few more wait, and
/// the rest is refused.
class CompileQueue {
 public:
  CompileQueue(int at_a_time, int most_waiting) : at_a_time_(at_a_time), most_waiting_(most_waiting) {}

  /// Runs `work` when it is its turn and returns when it is done. kUnavailable when too many wait; kCancelled
  /// when `given_up`, which is asked now and then, says that nobody waits for the result.
  Status Run(const std::function<void()>& work, const std::function<bool()>& given_up);

 private:
  const int at_a_time_;
  const int most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;
  int waiting_ = 0;
};

}  // namespace heddle::cluster
