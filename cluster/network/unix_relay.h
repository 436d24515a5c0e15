// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"

namespace heddle::cluster {

/// Stands between the connections of a unix socket and the server that reads them, and counts what they
/// send, which the kernel does not. One thread passes on the bytes of both directions, a buffer at a time,
/// and reads no further while the other side is busy. Thread-safe.
class UnixRelay {
 public:
  /// Descriptors that a connection needs: its own, and two of the pair behind it.
  static constexpr int kDescriptors = 3;

  /// A connection may send so many bytes before it is admitted.
  static Result<std::unique_ptr<UnixRelay>> Start(int64_t most_bytes);
  /// Closes all connections.
  virtual ~UnixRelay() = default;

  /// Takes over a connection. What the server gets in its place has a peer of this abstract name, which no
  /// other connection has; -1: no descriptor is free, and the connection is closed.
  virtual int Join(int connection, const std::string& name) = 0;
  /// From now on the connection sends as much as it likes.
  virtual void Admit(const std::string& name) = 0;
  /// How many connections were closed since the last call because they sent too much.
  virtual int TakeTalkers() = 0;
  /// Whether any connection is not admitted yet, and the names of some of those.
  virtual bool HasNewcomers() const = 0;
  virtual std::vector<std::string> Newcomers(size_t most) const = 0;
};

}  // namespace heddle::cluster
