// SPDX-License-Identifier: Apache-2.0
#include "cluster/network/unix_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "cluster/network/relay_direction.h"

namespace heddle::cluster {
namespace {

struct Connection {
  std::string name;
  RelayDirection in, out;
  bool is_admitted = false;
};

class UnixRelayImpl : public UnixRelay {
 public:
  explicit UnixRelayImpl(int64_t most_bytes) : most_bytes_(most_bytes) {}
  ~UnixRelayImpl() override {
    if (thread_.joinable()) {
      ends_ = true;
      Wake();
      thread_.join();
    }
    for (const Connection& connection : connections_) Close(connection);
    if (wake_ >= 0) close(wake_);
  }

  Status Start() {
    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_ < 0) return Unavailable("cannot listen on a unix socket: {}", strerror(errno));
    thread_ = std::thread([this] { Run(); });
    return OkStatus();
  }

  int Join(int connection, const std::string& name) override {
    std::array<int, 2> pair = {-1, -1};
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
    std::copy_n(name.begin(), length, address.sun_path + 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0 ||
        bind(pair[1], reinterpret_cast<const sockaddr*>(&address), size) != 0) {
      for (const int fd : {connection, pair[0], pair[1]})
        if (fd >= 0) close(fd);
      return -1;
    }
    {
      const std::lock_guard lock(mutex_);
      Connection& joined = connections_.emplace_back();
      joined.name = name;
      joined.in.from = joined.out.to = connection;
      joined.in.to = joined.out.from = pair[1];
    }
    Wake();
    return pair[0];
  }

  void Admit(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    for (Connection& connection : connections_)
      if (connection.name == name) connection.is_admitted = true;
  }

  int TakeTalkers() override { return talkers_.exchange(0); }

  bool HasNewcomers() const override {
    const std::lock_guard lock(mutex_);
    return std::any_of(connections_.begin(), connections_.end(),
                       [](const Connection& connection) { return !connection.is_admitted; });
  }
  std::vector<std::string> Newcomers(size_t most) const override {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const Connection& connection : connections_)
      if (!connection.is_admitted && names.size() < most) names.push_back(connection.name);
    return names;
  }

 private:
  static void Close(const Connection& connection) {
    close(connection.in.from);
    close(connection.in.to);
  }

  void Wake() const {
    const uint64_t one = 1;
    (void)!write(wake_, &one, sizeof(one));
  }

  // What to wait for at the two descriptors of each connection, in order.
  std::vector<pollfd> WaitedFor() const {
    std::vector<pollfd> polled = {{wake_, POLLIN, 0}};
    const std::lock_guard lock(mutex_);
    for (const Connection& connection : connections_) {
      for (const int16_t side : {0, 1}) {
        const RelayDirection& read = side == 0 ? connection.in : connection.out;
        const int16_t events = read.Events(side == 0 ? connection.out : connection.in);
        // poll() reports that a side has hung up in any case, again and again, but of no descriptor.
        polled.push_back({events != 0 ? read.from : -1, events, 0});
      }
    }
    return polled;
  }

  void Run() {
    while (!ends_) {
      std::vector<pollfd> polled = WaitedFor();
      if (poll(polled.data(), polled.size(), -1) < 0) continue;  // a signal
      uint64_t woken = 0;
      if (polled[0].revents != 0) (void)!read(wake_, &woken, sizeof(woken));
      const std::lock_guard lock(mutex_);
      // Connections that have joined since stand behind those that were polled.
      auto connection = connections_.begin();
      for (size_t i = 1; i < polled.size(); i += 2) {
        const bool is_quiet = polled[i].revents == 0 && polled[i + 1].revents == 0;
        const bool moves = is_quiet || Move(&*connection);
        if (!moves) Close(*connection);
        connection = moves ? std::next(connection) : connections_.erase(connection);
      }
    }
  }

  // False when the connection is over.
  bool Move(Connection* connection) {
    const auto all = [](const std::vector<char>&) { return true; };
    if (!connection->in.Move(all) || !connection->out.Move(all)) return false;
    if (!connection->is_admitted && connection->in.passed > most_bytes_) {
      ++talkers_;
      return false;
    }
    return !(connection->in.has_ended && connection->out.has_ended);
  }

  const int64_t most_bytes_;
  int wake_ = -1;
  std::atomic<bool> ends_ = false;
  std::atomic<int> talkers_ = 0;
  mutable std::mutex mutex_;
  std::list<Connection> connections_;  // removed by the thread alone
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<UnixRelay>> UnixRelay::Start(int64_t most_bytes) {
  auto relay = std::make_unique<UnixRelayImpl>(most_bytes);
  HEDDLE_RETURN_IF_ERROR(relay->Start());
  return std::unique_ptr<UnixRelay>(std::move(relay));
}

}  // namespace heddle::cluster
