// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "proto/master.pb.h"

namespace heddle::cluster {

/// What workers answer to sweeps, for those who wait for them. Thread-safe.
class SweepReplies {
 public:
  /// The number of a sweep that is about to be asked for.
  int64_t Begin();
  /// The reply of a worker. One that nobody waits for is dropped.
  void Take(const std::string& uuid, const Swept& reply);
  /// The replies that are there when `workers` have answered, or `patience` is over, or `given_up`, which is
  /// asked now and then, says that nobody waits; by worker. Ends the sweep.
  std::map<std::string, Swept> Await(int64_t id, size_t workers, std::chrono::milliseconds patience,
                                     const std::function<bool()>& given_up);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t last_ = 0;
  std::map<int64_t, std::map<std::string, Swept>> replies_;  // by sweep
};

}  // namespace heddle::cluster
