// SPDX-License-Identifier: Apache-2.0
#include "cluster/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace heddle::cluster {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kCancelledExitCode = 8;
std::atomic<int> signal_pipe{-1};
std::atomic<int> signals_seen{0};

// Async-signal-safe: one atomic, one write.
void OnSignal(int number) {
  if (signals_seen.fetch_add(1) > 0) _exit(kCancelledExitCode);
  const char byte = static_cast<char>(number);
  const ssize_t written = write(signal_pipe.load(), &byte, 1);
  static_cast<void>(written);
}

}  // namespace

struct InterruptGuard::Impl {
  int pipe[2] = {-1, -1};
  struct sigaction old_actions[3];
  std::thread thread;
};

InterruptGuard::InterruptGuard(Cancellation& cancellation) : impl_(std::make_unique<Impl>()) {
  if (pipe2(impl_->pipe, O_CLOEXEC) != 0) return;  // without descriptors left, signals keep their default
  signal_pipe.store(impl_->pipe[1]);
  signals_seen.store(0);
  const int read_end = impl_->pipe[0];
  impl_->thread = std::thread([read_end, &cancellation] {
    char byte = 0;
    while (read(read_end, &byte, 1) == 1 && byte != 0)
      cancellation.Request(Cancelled("cancelled by a signal"));
  });
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &impl_->old_actions[i]);
}

InterruptGuard::~InterruptGuard() {
  if (!impl_->thread.joinable()) return;
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &impl_->old_actions[i], nullptr);
  const char end = 0;
  const ssize_t written = write(impl_->pipe[1], &end, 1);
  static_cast<void>(written);
  impl_->thread.join();
  signal_pipe.store(-1);
  close(impl_->pipe[0]);
  close(impl_->pipe[1]);
}

}  // namespace heddle::cluster
