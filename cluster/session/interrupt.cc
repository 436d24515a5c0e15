// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <atomic>
#include <thread>

namespace heddle::cluster {
namespace {

constexpr int kCancelledExitCode = 8;

}  // namespace

struct InterruptGuard::Impl {
  asio::io_context context{1};
  asio::signal_set signals{context};
  bool survives = false;
  bool asked = false;
  std::atomic<bool> wants_end{false};
  std::thread thread;

  void Wait(Cancellation& cancellation) {
    signals.async_wait([this, &cancellation](const asio::error_code& error, int number) {
      if (error) return;
      if (asked && !survives) _exit(kCancelledExitCode);
      if (number != SIGINT) wants_end = true;
      asked = true;
      cancellation.Request(Cancelled("cancelled by a signal"));
      Wait(cancellation);
    });
  }
};

InterruptGuard::InterruptGuard(Cancellation& cancellation, bool survives) : impl_(std::make_unique<Impl>()) {
  impl_->survives = survives;
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction present = {};
    if (sigaction(number, nullptr, &present) == 0 && present.sa_handler == SIG_IGN) continue;  // nohup
    asio::error_code error;
    impl_->signals.add(number, error);
    if (error) return;  // without descriptors left, signals keep their default
  }
  impl_->Wait(cancellation);
  impl_->thread = std::thread([impl = impl_.get()] { impl->context.run(); });
}

InterruptGuard::~InterruptGuard() {
  impl_->context.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

bool InterruptGuard::wants_end() const { return impl_->wants_end; }

}  // namespace heddle::cluster
