// SPDX-License-Identifier: Apache-2.0
#include "cluster/process/systemd_notifier.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "core/environment/clock.h"
#include "core/environment/descriptor.h"
#include "core/text/utf8.h"

namespace heddle::cluster {
namespace {

constexpr std::chrono::milliseconds kLongestPause{2000};
constexpr int kTurnsInWatchdog = 4;

std::string Take(const char* variable) {
  const char* const value = getenv(variable);
  std::string text = value == nullptr ? "" : value;
  unsetenv(variable);
  return text;
}

int64_t NumberIn(const std::string& text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

SystemdNotifier SystemdNotifier::FromEnvironment() {
  SystemdNotifier notifier;
  const std::string socket = Take("NOTIFY_SOCKET");
  const int64_t watchdog_us = NumberIn(Take("WATCHDOG_USEC"));
  const std::string watched = Take("WATCHDOG_PID");
  if (socket.starts_with('/') || socket.starts_with('@')) notifier.socket_ = socket;
  const bool is_watched = watched.empty() || NumberIn(watched) == getpid();
  if (is_watched) notifier.watchdog_ = std::chrono::microseconds(std::max<int64_t>(watchdog_us, 0));
  return notifier;
}

void SystemdNotifier::Send(const std::string& message) const {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket_.empty() || socket_.size() >= sizeof(address.sun_path)) return;
  std::copy(socket_.begin(), socket_.end(), address.sun_path);
  if (socket_[0] == '@') address.sun_path[0] = '\0';
  const Descriptor fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  // A manager that is gone learns nothing; the daemon goes on.
  (void)!sendto(fd.get(), message.data(), message.size(), MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(&address), size);
}

void SystemdNotifier::Ready(const std::string& state) {
  const std::lock_guard lock(mutex_);
  state_ = state;
  Send("READY=1\nSTATUS=" + EscapeForTerminal(state));
}

void SystemdNotifier::Ping(const std::string& state) {
  if (!is_there()) return;
  const std::lock_guard lock(mutex_);
  std::string message;
  const int64_t now_ns = SystemClock().MonotonicNs();
  if (watchdog_.count() > 0 && now_ns >= next_watchdog_ns_) {
    next_watchdog_ns_ = now_ns + std::chrono::nanoseconds(watchdog_).count() / kTurnsInWatchdog;
    message = "WATCHDOG=1\n";
  }
  if (state != state_) message += "STATUS=" + EscapeForTerminal(state);
  state_ = state;
  if (!message.empty()) Send(message);
}

void SystemdNotifier::Stopping() { Send("STOPPING=1"); }

std::chrono::milliseconds SystemdNotifier::pause() const {
  if (watchdog_.count() == 0) return kLongestPause;
  const auto quarter = std::chrono::duration_cast<std::chrono::milliseconds>(watchdog_) / kTurnsInWatchdog;
  return std::clamp(quarter, std::chrono::milliseconds(1), kLongestPause);
}

}  // namespace heddle::cluster
