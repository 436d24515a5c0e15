// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "engine/session/cancellation.h"

namespace heddle::cluster {

/// While it lives, the first SIGINT, SIGTERM or SIGHUP asks `cancellation` to stop with kCancelled; a second
/// one ends the process with exit code 8, unless `survives`. A signal that was ignored before (nohup) stays
/// so. At most one at a time.
///
/// `when_late` is called once, on a thread of its own, when the guard still lives `late` after the first
/// signal: what runs is in a step that does not look whether it was cancelled. A user is to be answered
/// within a second.
class InterruptGuard {
 public:
  static constexpr std::chrono::milliseconds kLate{700};
  explicit InterruptGuard(engine::Cancellation& cancellation, bool survives = false,
                          std::function<void()> when_late = nullptr, std::chrono::milliseconds late = kLate);
  ~InterruptGuard();
  /// Whether one of the signals, SIGTERM or SIGHUP, wants the process to end.
  bool wants_end() const;

 private:
  struct Impl;
  static std::unique_ptr<Impl> MakeImpl();
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::cluster
