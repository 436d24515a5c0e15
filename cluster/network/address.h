// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "core/status.h"

// Addresses as users write them: HOST:PORT, [IPV6]:PORT, unix:PATH or unix-abstract:NAME.
namespace heddle::cluster {

bool IsUnixAddress(const std::string& address);
/// "/path" of "unix:/path"; "" for all others.
std::string SocketPath(const std::string& address);

/// True for addresses that other machines cannot reach: unix:..., unix-abstract:..., localhost, and IPv4 and
/// IPv6 addresses of the loopback. A name that only looks like one ("127.0.0.1.example", "127.1") is not.
bool IsLocalAddress(const std::string& address);

/// "host" of "host:80", "::1" of "[::1]:80".
std::string HostOf(const std::string& address);

/// An address as the system calls take it.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;
  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

/// What an address stands for, names looked up; at least one. kUnavailable for an unknown name, kUsage for a
/// path that is too long for a socket.
Result<std::vector<SocketAddress>> Resolve(const std::string& address);

}  // namespace heddle::cluster
