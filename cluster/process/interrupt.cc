// SPDX-License-Identifier: Apache-2.0
#include "cluster/process/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace heddle::cluster {
namespace {

constexpr int kCancelledExitCode = 8;

}  // namespace

struct InterruptGuard::Impl {
  asio::io_context context{1};
  asio::signal_set signals{context};
  asio::steady_timer timer{context};
  std::function<void()> when_late;
  std::chrono::milliseconds late;
  bool survives = false;
  bool asked = false;
  std::atomic<bool> wants_end{false};
  std::thread thread;

  void Wait(engine::Cancellation& cancellation) {
    signals.async_wait([this, &cancellation](const asio::error_code& error, int number) {
      if (error) return;
      if (asked && !survives) _exit(kCancelledExitCode);
      if (number != SIGINT) wants_end = true;
      if (!asked && when_late) {
        timer.expires_after(late);
        timer.async_wait([this](const asio::error_code& stopped) {
          if (!stopped) when_late();
        });
      }
      asked = true;
      cancellation.Request(Cancelled("cancelled by a signal"));
      Wait(cancellation);
    });
  }
};

// nullptr without descriptors left: signals keep their default.
std::unique_ptr<InterruptGuard::Impl> InterruptGuard::MakeImpl() {
  try {
    return std::make_unique<Impl>();
  } catch (const std::system_error&) {
    return nullptr;
  }
}

InterruptGuard::InterruptGuard(engine::Cancellation& cancellation, bool survives,
                               std::function<void()> when_late, std::chrono::milliseconds late)
    : impl_(MakeImpl()) {
  if (impl_ == nullptr) return;
  impl_->survives = survives;
  impl_->when_late = std::move(when_late);
  impl_->late = late;
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
  if (impl_ == nullptr) return;
  impl_->context.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

bool InterruptGuard::wants_end() const { return impl_ != nullptr && impl_->wants_end; }

}  // namespace heddle::cluster
