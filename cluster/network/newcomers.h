// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "cluster/network/address.h"
#include "cluster/network/unix_relay.h"
#include "core/status.h"

namespace heddle::cluster {

/// What a connection may send before a call of it has been let in: greetings of TLS and HTTP/2, headers and
/// small messages. Callers make a small call before they send a message that is larger.
constexpr int64_t kMostBytesOfNewcomers = int64_t{1} << 20;

/// The connections of a server of which no call has been let in yet. Each may send a bounded number of bytes:
/// all that strangers send, calls that are refused, pings and settings, costs the server memory before it is
/// dealt with. The kernel counts the bytes of a TCP connection, and a relay those of a unix socket.
/// Thread-safe.
class Newcomers {
 public:
  explicit Newcomers(int64_t most_bytes = kMostBytesOfNewcomers) : most_bytes_(most_bytes) {}

  /// Connections of unix sockets are counted as well, and come by a relay, for as long as this object lives.
  Status CountUnixSockets();
  int descriptors_of_connection() const { return relay_ == nullptr ? 1 : UnixRelay::kDescriptors; }

  /// A connection from `peer`. Returns what stands for it, which somebody else reads and closes; -1 where no
  /// descriptor is free, and the connection is closed.
  int Note(int fd, const SocketAddress& peer);
  /// A call of the connection was let in. `peer` as gRPC names it: "ipv4:127.0.0.1:4711",
  /// "ipv6:%5B::1%5D:4711", "unix-abstract:NAME".
  void Admit(const std::string& peer);
  /// `listener` is told of each connection of TCP that has ended before a call of it was let in, soon after,
  /// by the name of the peer. Once, before the first connection.
  void TellEnded(std::function<void(const std::string& peer)> listener) { tell_ended_ = std::move(listener); }
  /// Who they are, for people: "127.0.0.1:4711 or 10.0.0.7:4712"; of many the first ones.
  std::string Describe() const;
  /// Looks at all and shuts down those that have sent too much; their number.
  int ShutDownTalkers();
  /// Milliseconds until somebody should look again; -1: when a connection comes.
  int NextLookMs() const;

 private:
  struct Newcomer {
    int fd = -1;
    ino_t inode = 0;  // of the socket; no other has it while it is open
  };

  const int64_t most_bytes_;
  std::function<void(const std::string& peer)> tell_ended_;
  std::unique_ptr<UnixRelay> relay_;
  mutable std::mutex mutex_;
  std::map<std::string, Newcomer> newcomers_;  // by "address port"
};

/// What gRPC calls a peer, for people: "127.0.0.1:4711"; of a unix socket "user 1000, process 77".
std::string DescribePeer(std::string_view peer);

}  // namespace heddle::cluster
