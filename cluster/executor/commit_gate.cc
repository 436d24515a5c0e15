// SPDX-License-Identifier: Apache-2.0
#include "cluster/executor/commit_gate.h"

namespace heddle::cluster {

CommitGate::CommitGate(std::function<void(const ExecutorCommit&)> ask, Clock& clock)
    : ask_(std::move(ask)), clock_(clock) {}

Result<int64_t> CommitGate::Open(const std::string& path) {
  const std::lock_guard turn(asking_);
  ExecutorCommit question;
  question.path = path;
  {
    const std::lock_guard lock(mutex_);
    if (!why_closed_.ok()) return why_closed_;
    question.id = ++last_id_;
    until_ns_.reset();
  }
  ask_(question);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return until_ns_.has_value() || !why_closed_.ok(); });
  if (!why_closed_.ok()) return why_closed_;
  return *until_ns_;
}

bool CommitGate::IsOpen(int64_t permission) {
  {
    const std::lock_guard lock(mutex_);
    if (!why_closed_.ok()) return false;
  }
  return clock_.MonotonicNs() < permission;  // last: nothing comes between the clock and the change
}

void CommitGate::Answer(const ExecutorGrant& grant) {
  const std::lock_guard lock(mutex_);
  if (grant.id != last_id_) return;
  until_ns_ = grant.until_ns;
  changed_.notify_all();
}

void CommitGate::Close(const Status& why) {
  const std::lock_guard lock(mutex_);
  if (why_closed_.ok()) why_closed_ = why;
  changed_.notify_all();
}

}  // namespace heddle::cluster
