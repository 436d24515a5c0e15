// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace heddle::testing_support {

/// A process on a terminal of its own, 100 columns wide: what a person types, and what they see.
class Terminal {
 public:
  /// Runs words[0] in `directory`; `environment` is added to that of the test.
  Terminal(const std::vector<std::string>& words, const std::string& directory,
           const std::map<std::string, std::string>& environment) {
    winsize size = {.ws_row = 40, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
    child_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (child_ != 0) return;
    if (chdir(directory.c_str()) != 0) _exit(126);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  ~Terminal() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    close(terminal_);
  }
  Terminal(const Terminal&) = delete;

  void Type(const std::string& keys) { (void)!write(terminal_, keys.data(), keys.size()); }

  /// Waits until `text` is on the screen behind what was waited for before. False after 20 seconds without.
  bool WaitFor(const std::string& text) {
    while (true) {
      if (const size_t found = seen_.find(text, passed_); found != std::string::npos) {
        passed_ = found + text.size();
        return true;
      }
      if (!ReadMore()) return false;
    }
  }
  /// Waits for the end of the process: its exit code, 128 + signal when killed, -1 when it does not end.
  int WaitForEnd() {
    while (ReadMore()) {
    }
    int status = 0;
    if (waitpid(child_, &status, WNOHANG) != child_) return -1;
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  /// All that was written to the terminal so far.
  const std::string& seen() const { return seen_; }

 private:
  bool ReadMore() {
    pollfd file = {terminal_, POLLIN, 0};
    if (poll(&file, 1, 20'000 * kPatience) <= 0) return false;
    char block[4096];
    const ssize_t got = read(terminal_, block, sizeof(block));
    if (got <= 0) {
      // The terminal is closed a moment before the process is gone.
      for (int i = 0; i < 100 && waitid(P_PID, static_cast<id_t>(child_), nullptr, WEXITED | WNOWAIT) != 0;
           ++i)
        poll(nullptr, 0, 10);
      return false;
    }
    seen_.append(block, static_cast<size_t>(got));
    return true;
  }

  pid_t child_ = -1;
  int terminal_ = -1;
  std::string seen_;
  size_t passed_ = 0;
};

}  // namespace heddle::testing_support
