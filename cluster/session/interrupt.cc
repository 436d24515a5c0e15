// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <thread>

namespace heddle::cluster {
namespace {

constexpr int kCancelledExitCode = 8;

}  // namespace

struct InterruptGuard::Impl {
  asio::io_context context{1};
  asio::signal_set signals{context};
  bool asked = false;
  std::thread thread;

  void Wait(Cancellation& cancellation) {
    signals.async_wait([this, &cancellation](const asio::error_code& error, int) {
      if (error) return;
      if (asked) _exit(kCancelledExitCode);
      asked = true;
      cancellation.Request(Cancelled("cancelled by a signal"));
      Wait(cancellation);
    });
  }
};

InterruptGuard::InterruptGuard(Cancellation& cancellation) : impl_(std::make_unique<Impl>()) {
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

}  // namespace heddle::cluster
