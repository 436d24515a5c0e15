// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "core/environment/clock.h"
#include "core/status.h"
#include "ops/io/files/change_gate.h"

namespace heddle::cluster {

/// An executor's question: may this attempt change a file?
struct ExecutorCommit {
  int64_t id = 0;
  std::string path;
};
/// The answer, when it is yes. A no is not said: the executor is cancelled or killed.
struct ExecutorGrant {
  int64_t id = 0;
  int64_t until_ns = 0;  ///< By LeaseClock().
};

/// Holds every change of a file back until the master has said that this attempt may make it, and for no
/// longer than that holds (docs/decisions/0004). Thread-safe.
class CommitGate : public ops::ChangeGate {
 public:
  /// `ask` hands a question on; its answer comes by Answer(). `clock` outlives it.
  CommitGate(std::function<void(const ExecutorCommit&)> ask, Clock& clock);

  Result<int64_t> Open(const std::string& path) override;
  bool IsOpen(int64_t permission) override;

  void Answer(const ExecutorGrant& grant);
  /// No file is changed from now on. The first reason stays.
  void Close(const Status& why);

 private:
  const std::function<void(const ExecutorCommit&)> ask_;
  Clock& clock_;
  std::mutex asking_;  // one question at a time
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t last_id_ = 0;
  std::optional<int64_t> until_ns_;  // answer to last_id_
  Status why_closed_;
};

}  // namespace heddle::cluster
