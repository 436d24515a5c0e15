// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cluster/process/repeated_work.h"
#include "cluster/progress/progress_line.h"
#include "engine/control/local_run.h"

namespace heddle::cluster {

/// Progress of one run, on standard error, drawn by a thread of its own. Thread-safe but for Begin and End.
class ShownProgress {
 public:
  /// `is_quiet`: nothing is shown.
  explicit ShownProgress(bool is_quiet);
  ~ShownProgress() { End(); }

  /// A run with these surroundings is about to begin. They outlive it.
  void Begin(engine::RunSurroundings* surroundings);
  /// A run elsewhere, of which Tell() tells, is shown.
  void Begin();
  /// What a run in another process is at (progress_line.h).
  void Tell(const std::string& json);
  /// It is over: nothing is shown any more.
  void End();
  /// ProgressLine::Aside and TryHide.
  template <typename Print>
  auto Aside(const Print& print) -> decltype(print()) {
    return line_.Aside(print);
  }
  void TryHide() { line_.TryHide(); }

 private:
  std::optional<Progress> Look();

  const bool is_quiet_;
  ProgressBoard board_;
  std::mutex mutex_;
  std::optional<Progress> told_;  // By a worker. Under the mutex.
  ProgressLine line_;
  std::unique_ptr<RepeatedWork> ticks_;
};

}  // namespace heddle::cluster
