// SPDX-License-Identifier: Apache-2.0
#include "cluster/network/unix_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cluster/network/relay_direction.h"

namespace heddle::cluster {
namespace {

struct Connection {
  std::string name;
  RelayDirection in, out;
  std::array<uint32_t, 2> events = {};  // what epoll waits for at in.from and out.from
};

class UnixRelayImpl : public UnixRelay {
 public:
  explicit UnixRelayImpl(int64_t most_bytes) : most_bytes_(most_bytes) {}
  ~UnixRelayImpl() override {
    if (thread_.joinable()) {
      ends_ = true;
      const uint64_t one = 1;
      (void)!write(wake_, &one, sizeof(one));
      thread_.join();
    }
    for (const auto& [number, connection] : connections_) Close(connection);
    if (wake_ >= 0) close(wake_);
    if (epoll_ >= 0) close(epoll_);
  }

  Status Start() {
    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    uint32_t none = 0;
    if (wake_ < 0 || epoll_ < 0 || !WaitAt(wake_, kWake, EPOLLIN, &none))
      return Unavailable("cannot listen on a unix socket: {}", strerror(errno));
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
    const std::lock_guard lock(mutex_);
    const uint64_t number = ++last_number_;
    Connection& joined = connections_[number];
    joined.name = name;
    joined.in.from = joined.out.to = connection;
    joined.in.to = joined.out.from = pair[1];
    newcomers_.insert(name);
    if (WaitFor(number, &joined)) return pair[0];
    End(number);
    close(pair[0]);
    return -1;
  }

  void Admit(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    newcomers_.erase(name);
  }

  int TakeTalkers() override { return talkers_.exchange(0); }

  bool HasNewcomers() const override {
    const std::lock_guard lock(mutex_);
    return !newcomers_.empty();
  }
  std::vector<std::string> Newcomers(size_t most) const override {
    const std::lock_guard lock(mutex_);
    const auto some = static_cast<std::ptrdiff_t>(std::min(most, newcomers_.size()));
    return {newcomers_.begin(), std::next(newcomers_.begin(), some)};
  }

 private:
  static constexpr uint64_t kWake = 0;  // connections are counted from 1

  static void Close(const Connection& connection) {
    close(connection.in.from);
    close(connection.in.to);
  }

  // Has epoll wait for `events` at a descriptor, at which it has waited for `*before`. It reports that a side
  // has hung up in any case, again and again, but of no descriptor that it does not know.
  bool WaitAt(int fd, uint64_t number, uint32_t events, uint32_t* before) const {
    if (events == *before) return true;
    epoll_event event = {};
    event.events = events;
    event.data.u64 = number;
    const int change = *before == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    *before = events;
    return epoll_ctl(epoll_, change, fd, &event) == 0;
  }
  bool WaitFor(uint64_t number, Connection* connection) const {
    const RelayDirection& in = connection->in;
    const RelayDirection& out = connection->out;
    return WaitAt(in.from, number, static_cast<uint32_t>(in.Events(out)), &connection->events[0]) &&
           WaitAt(out.from, number, static_cast<uint32_t>(out.Events(in)), &connection->events[1]);
  }

  void Run() {
    std::array<epoll_event, 64> events = {};
    while (!ends_) {
      const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
      const std::lock_guard lock(mutex_);
      for (int i = 0; i < count; ++i) {
        const uint64_t number = events[static_cast<size_t>(i)].data.u64;
        const auto found = connections_.find(number);  // none: its other side has just ended it
        if (found == connections_.end()) continue;
        if (!Move(&found->second) || !WaitFor(number, &found->second)) End(number);
      }
    }
  }

  void End(uint64_t number) {
    const auto found = connections_.find(number);
    Close(found->second);
    newcomers_.erase(found->second.name);
    connections_.erase(found);
  }

  // False when the connection is over.
  bool Move(Connection* connection) {
    const auto all = [](std::string_view) { return true; };
    if (!connection->in.Move(all) || !connection->out.Move(all)) return false;
    if (connection->in.passed > most_bytes_ && newcomers_.contains(connection->name)) {
      ++talkers_;
      return false;
    }
    return !(connection->in.has_ended && connection->out.has_ended);
  }

  const int64_t most_bytes_;
  int wake_ = -1;
  int epoll_ = -1;
  std::atomic<bool> ends_ = false;
  std::atomic<int> talkers_ = 0;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Connection> connections_;  // by their numbers; removed by the thread alone
  uint64_t last_number_ = kWake;
  std::unordered_set<std::string> newcomers_;  // names of those that are not admitted
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<UnixRelay>> UnixRelay::Start(int64_t most_bytes) {
  auto relay = std::make_unique<UnixRelayImpl>(most_bytes);
  HEDDLE_RETURN_IF_ERROR(relay->Start());
  return std::unique_ptr<UnixRelay>(std::move(relay));
}

}  // namespace heddle::cluster
