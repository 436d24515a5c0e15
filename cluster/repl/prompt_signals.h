// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstdint>
#include <iterator>

namespace heddle::cluster {

/// Signals while a prompt waits for input. Each wakes Wait(), and none ends the process. One at a time.
class PromptSignals {
 public:
  enum class Event : uint8_t {
    kInput,   ///< A byte, or the end of the input, is there.
    kClear,   ///< SIGINT
    kLeave,   ///< SIGTERM or SIGHUP
    kRedraw,  ///< SIGWINCH or SIGCONT: the terminal may be another one than before.
  };

  PromptSignals();
  ~PromptSignals();
  PromptSignals(const PromptSignals&) = delete;

  /// Waits for input on a file descriptor, or a signal.
  Event Wait(int input);

  /// An interrupt has no effect from now on, until somebody else handles it: one that comes when a statement
  /// has just ended and no prompt waits yet ends nothing.
  static void LetPass();

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT};
  struct sigaction before_[std::size(kSignals)];
  int pipe_[2] = {-1, -1};
};

}  // namespace heddle::cluster
