// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "cluster/network/loopback.h"

namespace heddle::testing_support {

/// A TCP proxy on loopback that a test can freeze: connections stay open, nothing comes through, and what was
/// sent meanwhile comes through when it thaws. As a network does that is cut for a while.
class FreezableProxy {
 public:
  explicit FreezableProxy(const std::string& target)  ///< host:port on loopback
      : target_port_(std::stoi(target.substr(target.rfind(':') + 1))) {
    int port = 0;
    listener_ = cluster::ListenOnLoopback(&port).Release();
    if (listener_ < 0 || pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) return;
    endpoint_ = "127.0.0.1:" + std::to_string(port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~FreezableProxy() {
    Set(&ended_, true);
    if (thread_.joinable()) thread_.join();
    for (const int fd : {listener_, wake_[0], wake_[1]}) close(fd);
  }
  FreezableProxy(const FreezableProxy&) = delete;

  const std::string& endpoint() const { return endpoint_; }
  void Freeze() { Set(&frozen_, true); }
  void Thaw() { Set(&frozen_, false); }

 private:
  struct Pair {
    int caller;
    int target;
  };

  void Set(std::atomic<bool>* flag, bool value) {
    flag->store(value);
    (void)!write(wake_[1], "w", 1);
  }

  // False when the connection has ended.
  static bool HandOn(int from, int to) {
    char block[1 << 16];
    const ssize_t got = recv(from, block, sizeof(block), 0);
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t part = send(to, block + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
      if (part <= 0) return false;
      sent += part;
    }
    return got > 0;
  }

  void Accept() {
    const int caller = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (caller < 0) return;
    const int target = cluster::ConnectToLoopback(target_port_).Release();
    if (target >= 0)
      pairs_.push_back({caller, target});
    else
      close(caller);
  }

  void Serve() {
    while (!ended_) {
      std::vector<pollfd> pollers = {{wake_[0], POLLIN, 0}};
      if (!frozen_) {
        pollers.push_back({listener_, POLLIN, 0});
        for (const Pair& pair : pairs_) {
          pollers.push_back({pair.caller, POLLIN, 0});
          pollers.push_back({pair.target, POLLIN, 0});
        }
      }
      if (poll(pollers.data(), pollers.size(), -1) <= 0) continue;
      if (pollers[0].revents != 0) {  // what is to be done may have changed
        char bytes[16];
        (void)!read(wake_[0], bytes, sizeof(bytes));
        continue;
      }
      for (size_t i = pairs_.size(); i-- > 0;) {
        const Pair pair = pairs_[i];
        const bool open = (pollers[2 + 2 * i].revents == 0 || HandOn(pair.caller, pair.target)) &&
                          (pollers[3 + 2 * i].revents == 0 || HandOn(pair.target, pair.caller));
        if (open) continue;
        close(pair.caller);
        close(pair.target);
        pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (pollers[1].revents != 0) Accept();
    }
    for (const Pair& pair : pairs_) {
      close(pair.caller);
      close(pair.target);
    }
  }

  int target_port_;
  std::string endpoint_;
  int listener_ = -1;
  int wake_[2] = {-1, -1};
  std::atomic<bool> frozen_{false};
  std::atomic<bool> ended_{false};
  std::vector<Pair> pairs_;  // of the thread
  std::thread thread_;
};

}  // namespace heddle::testing_support
