// SPDX-License-Identifier: Apache-2.0
#include "cluster/chaos/lossy_relay.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "cluster/chaos/fault_injector.h"
#include "cluster/chaos/grpc_message_count.h"
#include "cluster/network/relay_direction.h"
#include "cluster/security/token.h"
#include "core/environment/descriptor.h"
#include "core/environment/random.h"
#include "core/hash.h"

namespace heddle::cluster {
namespace {

constexpr std::string_view kScheme = "unix-abstract:";

struct Address {
  sockaddr_un bytes = {};
  socklen_t size = 0;
};

Address AddressOf(std::string_view name) {
  Address address;
  address.bytes.sun_family = AF_UNIX;
  const size_t length = std::min(name.size(), sizeof(address.bytes.sun_path) - 1);
  std::copy_n(name.begin(), length, address.bytes.sun_path + 1);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

// How many messages pass until one is lost.
class Losses {
 public:
  Losses(double share, uint64_t seed) : share_(share), random_(seed), left_(Draw()) {}
  /// One more message: whether it is lost.
  bool Next() {
    if (--left_ > 0) return false;
    left_ = Draw();
    return true;
  }
  void MakeRarer() {
    share_ /= 2;
    left_ = Draw();
  }

 private:
  int64_t Draw() {
    constexpr double kMost = 1e15;
    return std::max<int64_t>(1, std::llround(std::min(kMost, WaitOfMean(random_, 1 / share_))));
  }

  double share_;
  SeededRandom random_;
  int64_t left_;
};

// From one rank to another.
struct Pair {
  Pair(Descriptor at, std::string to, double share, uint64_t seed)
      : listener(std::move(at)), target(std::move(to)), small(share, seed), large(share, FoldHash(seed, 1)) {}
  Descriptor listener;
  std::string target;  // Name of its socket.
  Losses small, large;
};

struct Connection {
  explicit Connection(Pair* of) : pair(of) {}
  Pair* pair;
  Descriptor caller, target;
  RelayDirection to_target, to_caller;
  GrpcMessageCount calls{/*from_client=*/true}, answers{/*from_client=*/false};
};

class LossyRelayImpl : public LossyRelay {
 public:
  LossyRelayImpl(double share, uint64_t seed) : share_(share), seed_(seed) {}
  ~LossyRelayImpl() override {
    ends_ = true;
    Wake();
    if (thread_.joinable()) thread_.join();
  }

  Status Start() {
    wake_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_.ok()) return Unavailable("cannot relay messages between workers: {}", strerror(errno));
    thread_ = std::thread([this] { Run(); });
    return OkStatus();
  }

  Result<std::string> Open(const std::string& target) override {
    const std::string name = "heddle-lossy-" + MakeToken();
    const Address address = AddressOf(name);
    Descriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!target.starts_with(kScheme) ||
        bind(listener.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.size) != 0 ||
        listen(listener.get(), SOMAXCONN) != 0)
      return Unavailable("cannot relay messages between workers: {}", strerror(errno));
    {
      const std::lock_guard lock(mutex_);
      pairs_.emplace_back(std::move(listener), target.substr(kScheme.size()), share_,
                          FoldHash(seed_, pairs_.size()));
    }
    Wake();
    return std::string(kScheme) + name;
  }

  int64_t messages() const override { return messages_; }
  int64_t lost() const override { return lost_; }

 private:
  void Wake() const {
    const uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof(one));
  }

  void Run() {
    while (!ends_) {
      std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
      std::vector<Pair*> pairs;
      {
        const std::lock_guard lock(mutex_);
        for (Pair& pair : pairs_) pairs.push_back(&pair);
      }
      for (const Pair* const pair : pairs) polled.push_back({pair->listener.get(), POLLIN, 0});
      for (const Connection& connection : connections_) {
        // poll() reports that a side has hung up in any case, again and again, but of no descriptor.
        const auto wait = [&](const RelayDirection& read, const RelayDirection& back) {
          const int16_t events = read.Events(back);
          polled.push_back({events != 0 ? read.from : -1, events, 0});
        };
        wait(connection.to_target, connection.to_caller);
        wait(connection.to_caller, connection.to_target);
      }
      if (poll(polled.data(), polled.size(), -1) < 0) continue;  // a signal
      uint64_t woken = 0;
      if (polled[0].revents != 0) (void)!read(wake_.get(), &woken, sizeof(woken));
      auto connection = connections_.begin();
      for (size_t i = 1 + pairs.size(); i < polled.size(); i += 2) {
        const bool is_quiet = polled[i].revents == 0 && polled[i + 1].revents == 0;
        connection = is_quiet || Move(*connection) ? std::next(connection) : connections_.erase(connection);
      }
      for (size_t i = 0; i < pairs.size(); ++i)
        if (polled[1 + i].revents != 0) Accept(*pairs[i]);
    }
  }

  void Accept(Pair& pair) {
    Connection connection(&pair);
    connection.caller = Descriptor(accept4(pair.listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.caller.ok()) return;
    connection.target = Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const Address address = AddressOf(pair.target);
    // Of an executor that has ended: then the caller is told.
    if (connect(connection.target.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.size) !=
        0)
      return;
    connection.to_target.from = connection.to_caller.to = connection.caller.get();
    connection.to_target.to = connection.to_caller.from = connection.target.get();
    connections_.push_back(std::move(connection));
  }

  // False when the connection is over.
  bool Move(Connection& connection) {
    const auto passes = [&](GrpcMessageCount* count, std::string_view bytes) {
      bool is_lost = false;
      count->Feed(bytes, [&](size_t size) {
        if (is_lost) return;
        ++messages_;
        Pair& pair = *connection.pair;
        const bool is_large = size >= kPartOfValueBytes;
        is_lost = (is_large ? pair.large : pair.small).Next();
        if (is_lost) ++lost_;
        if (is_lost && is_large) pair.large.MakeRarer();
      });
      return !is_lost;
    };
    return connection.to_target.Move([&](std::string_view bytes) {
      return passes(&connection.calls, bytes);
    }) && connection.to_caller.Move([&](std::string_view bytes) {
      return passes(&connection.answers, bytes);
    }) && !(connection.to_target.has_ended && connection.to_caller.has_ended);
  }

  const double share_;
  const uint64_t seed_;
  Descriptor wake_;
  std::atomic<bool> ends_ = false;
  std::atomic<int64_t> messages_ = 0;
  std::atomic<int64_t> lost_ = 0;
  std::mutex mutex_;
  std::list<Pair> pairs_;              // Grows under mutex_; each is the thread's.
  std::list<Connection> connections_;  // Of the thread.
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<LossyRelay>> LossyRelay::Start(double share, uint64_t seed) {
  auto relay = std::make_unique<LossyRelayImpl>(share, seed);
  HEDDLE_RETURN_IF_ERROR(relay->Start());
  return std::unique_ptr<LossyRelay>(std::move(relay));
}

}  // namespace heddle::cluster
