// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cluster/network/newcomers.h"
#include "core/status.h"

namespace heddle::cluster {

/// How many connections are open at a time; more are closed at once, and whoever made them may try again.
struct ConnectionLimits {
  int most = 0;
  int most_of_a_peer = 0;  ///< From one address of a machine, or of one user of a unix socket.
  /// Connections of a unix socket that are of another user are closed at once. The superuser's are not.
  bool only_own_user = false;
};

/// For a server that strangers reach: as many as the process has descriptors for, less those that it needs
/// itself, and a part of them for each peer. `descriptors`: how many of them a connection needs.
ConnectionLimits LimitsForStrangers(int descriptors = 1);
/// For a server whose peers are known by number, and of one user on this machine.
ConnectionLimits LimitsForPeers(int peers);

/// Listens on an address and hands connections on. gRPC's own listener is deaf for ever once it had no
/// descriptor for a connection; this one keeps one in reserve to take connections and refuse them, and goes
/// on as soon as others have closed.
class Acceptor {
 public:
  /// Takes over a connected socket, closes it in the end.
  using Taker = std::function<void(int fd)>;

  /// `address` as in cluster/network/address.h; port 0: any. kUnavailable when it cannot be bound.
  /// Connections are noted with `newcomers`, which are looked at as long as the acceptor lives.
  static Result<std::unique_ptr<Acceptor>> Listen(const std::string& address, const ConnectionLimits& limits,
                                                  std::shared_ptr<Newcomers> newcomers = nullptr);
  /// Takes no more connections; those that were handed on stay.
  virtual ~Acceptor() = default;
  /// With the number of the port.
  virtual const std::string& address() const = 0;
  /// From now on; once. `taker` is called on a thread of the acceptor.
  virtual void Start(Taker taker) = 0;
};

}  // namespace heddle::cluster
