// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cluster/cuttable_proxy.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "cluster/network/loopback.h"

namespace heddle::cluster {
namespace {

// The other side sees a reset, not an orderly end.
void Reset(int fd) {
  const linger at_once = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close(fd);
}

// Hands on what there is; false when the connection has ended.
bool HandOn(int from, int to) {
  char block[1 << 16];
  const ssize_t got = recv(from, block, sizeof(block), 0);
  for (ssize_t sent = 0; sent < got;) {
    const ssize_t part = send(to, block + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
    if (part <= 0) return false;
    sent += part;
  }
  return got > 0;
}

}  // namespace

CuttableProxy::CuttableProxy(const std::string& target)
    : target_port_(std::stoi(target.substr(target.rfind(':') + 1))) {
  int port = 0;
  listener_ = ListenOnLoopback(&port).Release();
  if (listener_ < 0 || pipe2(wake_, O_CLOEXEC) != 0) return;
  endpoint_ = "127.0.0.1:" + std::to_string(port);
  thread_ = std::thread([this] { Serve(); });
}

CuttableProxy::~CuttableProxy() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  close(wake_[1]);
  if (thread_.joinable()) thread_.join();
  close(wake_[0]);
  close(listener_);
}

void CuttableProxy::Cut() {
  const std::lock_guard lock(mutex_);
  cut_ = true;
  if (write(wake_[1], "c", 1) != 1) ended_ = true;
}

void CuttableProxy::Refuse() {
  {
    const std::lock_guard lock(mutex_);
    refuse_ = true;
  }
  Cut();
}

void CuttableProxy::CloseAll() {
  for (const Pair& pair : pairs_) {
    Reset(pair.caller);
    Reset(pair.target);
  }
  pairs_.clear();
}

bool CuttableProxy::Accept() {
  const int caller = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (caller < 0) return false;
  bool refuse = false;
  {
    const std::lock_guard lock(mutex_);
    refuse = refuse_;
  }
  const int target = refuse ? -1 : ConnectToLoopback(target_port_).Release();
  if (target >= 0)
    pairs_.push_back({caller, target});
  else
    Reset(caller);
  return true;
}

void CuttableProxy::Serve() {
  for (;;) {
    std::vector<pollfd> pollers = {{listener_, POLLIN, 0}, {wake_[0], POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      pollers.push_back({pair.caller, POLLIN, 0});
      pollers.push_back({pair.target, POLLIN, 0});
    }
    if (poll(pollers.data(), pollers.size(), -1) <= 0) continue;
    if (pollers[1].revents != 0) {
      char byte = 0;
      const bool alive = read(wake_[0], &byte, 1) == 1;
      const std::lock_guard lock(mutex_);
      if (std::exchange(cut_, false) || ended_ || !alive) CloseAll();
      if (ended_ || !alive) return;
      continue;
    }
    for (size_t i = pairs_.size(); i-- > 0;) {
      const Pair pair = pairs_[i];
      const bool first = pollers[2 + 2 * i].revents == 0 || HandOn(pair.caller, pair.target);
      const bool second = first && (pollers[3 + 2 * i].revents == 0 || HandOn(pair.target, pair.caller));
      if (first && second) continue;
      close(pair.caller);
      close(pair.target);
      pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (pollers[0].revents != 0) Accept();
  }
}

}  // namespace heddle::cluster
