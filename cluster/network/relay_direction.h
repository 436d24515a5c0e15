// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace heddle::cluster {

/// One direction of a connection of two sockets that a relay joins: bytes that were read and are not written
/// yet.
struct RelayDirection {
  static constexpr size_t kBufferBytes = 64 << 10;

  int from = -1, to = -1;
  std::vector<char> buffer;  ///< Empty while nothing waits.
  size_t written = 0;
  bool has_ended = false;  ///< `from` sends no more, and `to` knows it.
  int64_t passed = 0;      ///< Bytes read.

  bool Waits() const { return written < buffer.size(); }

  /// Reads if nothing waits, writes what does. `passes`, a bool(const std::vector<char>&), says of what was
  /// just read whether it may go on. False when the connection is over.
  template <typename Passes>
  bool Move(const Passes& passes) {
    if (!Waits() && !has_ended) {
      buffer.resize(kBufferBytes);
      written = 0;
      const ssize_t got = recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
      buffer.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
      if (got < 0) return IsLater(errno);
      if (got == 0) {
        has_ended = true;
        return shutdown(to, SHUT_WR) == 0;
      }
      passed += got;
      if (!passes(buffer)) return false;
    }
    while (Waits()) {
      const ssize_t sent =
          send(to, buffer.data() + written, buffer.size() - written, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0) return IsLater(errno);
      written += static_cast<size_t>(sent);
    }
    buffer = {};  // thousands of connections may be idle
    written = 0;
    return true;
  }

  /// What poll() is to wait for at `from`, of which `back` is the other direction; 0: nothing.
  int16_t Events(const RelayDirection& back) const {
    const bool reads = !has_ended && !Waits();
    return static_cast<int16_t>((reads ? POLLIN : 0) | (back.Waits() ? POLLOUT : 0));
  }

 private:
  static bool IsLater(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }
};

}  // namespace heddle::cluster
