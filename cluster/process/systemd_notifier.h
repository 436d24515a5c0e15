// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <mutex>
#include <string>

namespace heddle::cluster {

/// The service manager that started this daemon, systemd say, and is told how it goes: sd_notify(3), one
/// datagram a message to the socket in $NOTIFY_SOCKET. Without that variable nothing is sent. The protocol is
/// promised to stay as it is and its manual has a program without libsystemd, which would bring five more
/// libraries into every package for one sendto(). Thread-safe.
class SystemdNotifier {
 public:
  /// Reads $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID, and takes them out of the environment, so that
  /// no process of a job speaks for the daemon. Before there are other threads.
  static SystemdNotifier FromEnvironment();

  SystemdNotifier() = default;
  SystemdNotifier(SystemdNotifier&& other) noexcept
      : socket_(std::move(other.socket_)), watchdog_(other.watchdog_) {}

  /// The daemon serves: READY=1 with what it is at.
  void Ready(const std::string& state);
  /// The loop that matters has come round: WATCHDOG=1, at most four times in the time that the watchdog
  /// allows, and STATUS= where that has changed.
  void Ping(const std::string& state);
  /// It is about to end: STOPPING=1.
  void Stopping();

  bool is_there() const { return !socket_.empty(); }
  /// How often Ping is to be called: a quarter of what the watchdog allows, 2 s at most.
  std::chrono::milliseconds pause() const;

 private:
  void Send(const std::string& message) const;

  std::string socket_;                     // A path, or @NAME for an abstract one; "" for none.
  std::chrono::microseconds watchdog_{0};  // 0: nobody watches.
  std::mutex mutex_;
  std::string state_;  // As it was told.
  int64_t next_watchdog_ns_ = 0;
};

}  // namespace heddle::cluster
