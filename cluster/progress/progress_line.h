// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/environment/clock.h"
#include "core/environment/progress_board.h"

namespace heddle::cluster {

/// What a line of progress tells.
struct Progress {
  ProgressState state;
  int64_t used_bytes = 0;   ///< Memory that is held;
  int64_t limit_bytes = 0;  ///< and may be; 0: no limit.
};
std::string ToJson(const Progress& progress);
/// nullopt for what is no JSON of ToJson.
std::optional<Progress> ParseProgress(const std::string& json);

/// How much of a run is over and how long the rest takes, from what was seen of it before. Not thread-safe.
class RemainingTime {
 public:
  struct Estimate {
    std::optional<double> done;  ///< 0 to 1.
    std::optional<int64_t> left_ns;
  };
  /// The state at `now_ns`, which is not before that of the last call.
  Estimate Look(const ProgressState& state, int64_t now_ns);

 private:
  uint64_t loop_ = 0, plan_ = 0;  // Which one was looked at last; 0: none.
  int64_t loop_since_ns_ = 0, plan_since_ns_ = 0;
  double loop_begin_ = 0;  // How much of the loop was over then.
};

/// Of rounds that are shorter than the time between two looks each look sees a statement by chance, now the
/// body and now the condition of the loop: the one that most of the last looks have seen is where the time
/// goes. Not thread-safe.
class MostSeenStatement {
 public:
  /// The state of a look, with the statement that is to be shown.
  ProgressState Look(ProgressState state);

 private:
  static constexpr size_t kMostLooks = 10;
  std::deque<ProgressState> seen_;  // Since rounds are that short.
};

/// Where progress is shown.
class ProgressOutput {
 public:
  virtual ~ProgressOutput() = default;
  virtual bool is_terminal() const = 0;
  virtual int columns() const = 0;  ///< Of a terminal.
  virtual void Write(std::string_view text) = 0;
};
/// Standard error.
ProgressOutput& StandardError();

/// Shows what a run is at: on a terminal one line that changes, from two seconds on; elsewhere a line every
/// 30 seconds. Thread-safe.
class ProgressLine {
 public:
  /// `look` tells what to show; nullopt: nothing yet. All outlive it. The run begins now.
  ProgressLine(Clock& clock, ProgressOutput& output, std::function<std::optional<Progress>()> look);
  /// The line is gone.
  ~ProgressLine() { Hide(); }

  static constexpr int64_t kSilenceNs = 2'000'000'000, kPauseNs = 30'000'000'000;

  /// Shows what there is to show. From time to time.
  void Tick();
  /// Takes the line away, until the next Tick.
  void Hide();
  /// Takes the line away and prints something else: the line does not come back within it.
  template <typename Print>
  auto Aside(const Print& print) -> decltype(print()) {
    const std::lock_guard lock(mutex_);
    Erase();
    return print();
  }
  /// Hide() for one who must not wait: without effect while something is printed.
  void TryHide();

 private:
  std::string Text(const Progress& progress, int64_t now_ns, size_t columns);
  void Erase();

  Clock& clock_;
  ProgressOutput& output_;
  const std::function<std::optional<Progress>()> look_;
  const int64_t begin_ns_;
  std::mutex mutex_;  // Of what follows, and of the output.
  bool is_shown_ = false;
  int64_t last_line_ns_;
  int64_t last_rows_ = 0, last_rows_ns_ = 0;
  double rows_per_s_ = 0;
  RemainingTime remaining_;
  MostSeenStatement statement_;
};

}  // namespace heddle::cluster
