// SPDX-License-Identifier: Apache-2.0
#include "cluster/repl/prompt_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace heddle::cluster {
namespace {

volatile sig_atomic_t wake = -1;  // where the handler writes the number of its signal

void Handle(int number) {
  const int error = errno;
  const auto byte = static_cast<unsigned char>(number);
  (void)!write(wake, &byte, 1);
  errno = error;
}

}  // namespace

PromptSignals::PromptSignals() {
  if (pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) return;  // then signals do what they did
  wake = pipe_[1];
  struct sigaction action = {};
  action.sa_handler = Handle;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    const bool is_ignored = before_[i].sa_handler == SIG_IGN;
    if (!is_ignored) sigaction(kSignals[i], &action, nullptr);
  }
}

PromptSignals::~PromptSignals() {
  if (pipe_[0] < 0) return;
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  wake = -1;
  close(pipe_[0]);
  close(pipe_[1]);
}

void PromptSignals::LetPass() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

PromptSignals::Event PromptSignals::Wait(int input) {
  while (true) {
    pollfd files[2] = {{input, POLLIN, 0}, {pipe_[0], POLLIN, 0}};
    if (poll(files, 2, -1) < 0 && errno != EINTR) return Event::kInput;  // the read will tell
    unsigned char number = 0;
    if (pipe_[0] >= 0 && read(pipe_[0], &number, 1) == 1) {
      if (number == SIGINT) return Event::kClear;
      return number == SIGTERM || number == SIGHUP ? Event::kLeave : Event::kRedraw;
    }
    if (files[0].revents != 0) return Event::kInput;
  }
}

}  // namespace heddle::cluster
