// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "cluster/network/address.h"

namespace heddle::cluster {

/// What a connection may send before a call of it has been let in: greetings of TLS and HTTP/2, headers and
/// small messages. Callers make a small call before they send a message that is larger.
constexpr int64_t kMostBytesOfNewcomers = int64_t{1} << 20;

/// The connections of a server of which no call has been let in yet. Each may send a bounded number of bytes:
/// all that strangers send, calls that are refused, pings and settings, costs the server memory before it is
/// dealt with. The kernel counts the bytes of a TCP connection; those of unix sockets, which only this
/// machine's users reach, are not counted. Thread-safe.
class Newcomers {
 public:
  explicit Newcomers(int64_t most_bytes = kMostBytesOfNewcomers) : most_bytes_(most_bytes) {}

  /// A connection from `peer`, which somebody else reads and closes.
  void Note(int fd, const SocketAddress& peer);
  /// A call of the connection was let in. `peer` as gRPC names it: "ipv4:127.0.0.1:4711",
  /// "ipv6:%5B::1%5D:4711".
  void Admit(const std::string& peer);
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
  mutable std::mutex mutex_;
  std::map<std::string, Newcomer> newcomers_;  // by "address port"
};

}  // namespace heddle::cluster
