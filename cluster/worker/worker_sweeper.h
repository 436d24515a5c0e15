// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "proto/master.pb.h"

namespace heddle::cluster {

/// Removes what executors that are gone have left over, as the master asks ('heddle admin gc'): logs of jobs
/// that it knows no more, names of spill files whose executor was killed, checkpoints of jobs that have
/// ended. On a thread of its own: whoever asks may not wait for a disk or an object store. Thread-safe.
class WorkerSweeper {
 public:
  /// `log_folder`: of executors. `spill_folder`: theirs, "": that of temporary files. `changed` is called on
  /// the thread when there is a reply.
  WorkerSweeper(std::string log_folder, std::string spill_folder, std::function<void()> changed);
  ~WorkerSweeper();  ///< Waits for a sweep in progress; those that have not begun do not.
  WorkerSweeper(const WorkerSweeper&) = delete;
  WorkerSweeper& operator=(const WorkerSweeper&) = delete;

  /// Returns at once.
  void Sweep(const heddle::Sweep& order);
  /// What a sweep has found that was asked for, once.
  std::optional<Swept> NextSwept();

 private:
  void Work();
  Swept Do(const heddle::Sweep& order) const;

  const std::string log_folder_;
  const std::string spill_folder_;
  const std::function<void()> changed_;
  std::mutex mutex_;
  std::condition_variable wanted_changed_;
  std::deque<heddle::Sweep> wanted_;
  std::deque<Swept> swept_;
  bool ended_ = false;
  std::thread thread_;  // from the first order on
};

}  // namespace heddle::cluster
