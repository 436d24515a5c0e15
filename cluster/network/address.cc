// SPDX-License-Identifier: Apache-2.0
#include "cluster/network/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstring>

namespace heddle::cluster {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kAbstract = "unix-abstract:";

Result<SocketAddress> UnixAddress(const std::string& address) {
  // The name of an abstract socket begins with a zero byte; a path ends with one.
  const bool abstract = address.starts_with(kAbstract);
  const std::string name =
      abstract ? '\0' + address.substr(kAbstract.size()) : address.substr(kUnix.size()) + '\0';
  SocketAddress result;
  auto* socket = reinterpret_cast<sockaddr_un*>(&result.storage);
  socket->sun_family = AF_UNIX;
  if (name.size() > sizeof(socket->sun_path))
    return Usage("{} is too long for a socket: {} characters are the most", address,
                 sizeof(socket->sun_path) - 1);
  std::memcpy(socket->sun_path, name.data(), name.size());
  result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return result;
}

}  // namespace

bool IsUnixAddress(const std::string& address) {
  return address.starts_with(kUnix) || address.starts_with(kAbstract);
}

std::string SocketPath(const std::string& address) {
  return address.starts_with(kUnix) ? address.substr(kUnix.size()) : "";
}

std::string HostOf(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host =
      colon == std::string::npos || address.ends_with(']') ? address : address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') return host.substr(1, host.size() - 2);
  return host;
}

bool IsLocalAddress(const std::string& address) {
  if (IsUnixAddress(address)) return true;
  const std::string host = HostOf(address);
  if (host == "localhost") return true;
  constexpr uint32_t kLoopbackNet = 127;
  in_addr v4 = {};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == kLoopbackNet;
  in6_addr v6 = {};
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == kLoopbackNet);
}

Result<std::vector<SocketAddress>> Resolve(const std::string& address) {
  if (IsUnixAddress(address)) {
    HEDDLE_ASSIGN_OR_RETURN(const SocketAddress one, UnixAddress(address));
    return std::vector<SocketAddress>{one};
  }
  const std::string host = HostOf(address);
  const std::string port = address.substr(address.rfind(':') + 1);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    return Unavailable("'{}' is not known: {}", host, gai_strerror(error));
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    SocketAddress& next = addresses.emplace_back();
    next.size = one->ai_addrlen;
    std::memcpy(&next.storage, one->ai_addr, one->ai_addrlen);
  }
  freeaddrinfo(found);
  return addresses;
}

}  // namespace heddle::cluster
