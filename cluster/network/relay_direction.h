// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace heddle::cluster {

/// One direction of a connection of two sockets that a relay joins: bytes that were read and are not written
/// yet.
struct RelayDirection {
  static constexpr size_t kBufferBytes = 64 << 10;

  int from = -1, to = -1;
  std::vector<char> unsent;  ///< No memory while nothing waits: thousands of connections may be idle.
  size_t written = 0;        ///< Of `unsent`.
  bool has_ended = false;    ///< `from` sends no more, and `to` knows it.
  int64_t passed = 0;        ///< Bytes read.

  bool Waits() const { return !unsent.empty(); }

  /// Reads if nothing waits, writes what does. `passes`, a bool(std::string_view), says of what was just read
  /// whether it may go on. False when the connection is over.
  template <typename Passes>
  bool Move(const Passes& passes) {
    if (Waits()) return SendUnsent();
    if (has_ended) return true;
    thread_local std::array<char, kBufferBytes> buffer;
    const ssize_t got = recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0) return IsLater(errno);
    if (got == 0) {
      has_ended = true;
      return shutdown(to, SHUT_WR) == 0;
    }
    passed += got;
    std::string_view bytes(buffer.data(), static_cast<size_t>(got));
    if (!passes(bytes)) return false;
    if (!Send(&bytes)) return false;
    unsent.assign(bytes.begin(), bytes.end());
    written = 0;
    return true;
  }

  /// What poll() or epoll is to wait for at `from`, of which `back` is the other direction; 0: nothing.
  int16_t Events(const RelayDirection& back) const {
    const bool reads = !has_ended && !Waits();
    return static_cast<int16_t>((reads ? POLLIN : 0) | (back.Waits() ? POLLOUT : 0));
  }

 private:
  bool SendUnsent() {
    std::string_view bytes(unsent.data() + written, unsent.size() - written);
    if (!Send(&bytes)) return false;
    written = unsent.size() - bytes.size();
    if (bytes.empty()) unsent = {};
    return true;
  }

  // Takes off what `to` has room for; false where it has failed.
  bool Send(std::string_view* bytes) const {
    while (!bytes->empty()) {
      const ssize_t sent = send(to, bytes->data(), bytes->size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0) return IsLater(errno);
      bytes->remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  static bool IsLater(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }
};

}  // namespace heddle::cluster
