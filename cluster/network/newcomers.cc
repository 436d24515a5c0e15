// SPDX-License-Identifier: Apache-2.0
#include "cluster/network/newcomers.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace heddle::cluster {
namespace {

// A processor is busy for a microsecond for each connection that is looked at.
constexpr int kLookAgainMs = 20;
constexpr size_t kOftenLookedAt = 64;
constexpr int kLookAtManyAgainMs = 200;

// Names of peers behind a relay begin with it: then the number of this process, that of the inode, which is
// that of one open socket, and the user and the process at the other end.
constexpr std::string_view kRelayed = "heddle-connection-";
constexpr size_t kMostDescribed = 8;

std::string NameOf(const void* address, int family, in_port_t port) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, address, text, sizeof(text));
  return fmt::format("{} {}", text, ntohs(port));
}

// "127.0.0.1 4711", "::1 4711"; an address of the old kind in the form of the new one is one of the old kind,
// as gRPC has it.
std::optional<std::string> NameOf(const SocketAddress& peer) {
  if (peer.family() == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&peer.storage);
    return NameOf(&v4->sin_addr, AF_INET, v4->sin_port);
  }
  if (peer.family() != AF_INET6) return std::nullopt;
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&peer.storage);
  if (!IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) return NameOf(&v6->sin6_addr, AF_INET6, v6->sin6_port);
  return NameOf(reinterpret_cast<const char*>(&v6->sin6_addr) + 12, AF_INET, v6->sin6_port);
}

// The same of what gRPC calls it.
std::string NameOf(std::string_view peer) {
  peer.remove_prefix(std::min(peer.find(':'), peer.size() - 1) + 1);
  const size_t colon = peer.rfind(':');
  if (colon == std::string_view::npos) return "";
  std::string host(peer.substr(0, colon));
  if (host.starts_with("%5B")) host.erase(0, 3);
  if (host.ends_with("%5D")) host.resize(host.size() - 3);
  if (const size_t zone = host.find('%'); zone != std::string::npos) host.resize(zone);
  return fmt::format("{} {}", host, peer.substr(colon + 1));
}

// "heddle-connection-1-2-1000-77": "user 1000, process 77"
std::string DescribeRelayed(std::string_view name) {
  const size_t process = name.rfind('-');
  const size_t user = name.rfind('-', process - 1);
  return fmt::format("user {}, process {}", name.substr(user + 1, process - user - 1),
                     name.substr(process + 1));
}

bool IsStill(int fd, ino_t inode) {
  struct stat status {};
  return fstat(fd, &status) == 0 && status.st_ino == inode;
}

// Bytes that have come over a TCP connection so far.
int64_t ReceivedBytes(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return static_cast<int64_t>(info.tcpi_bytes_received);
}

// "127.0.0.1 4711" with a colon; "::1 4711" with brackets as well.
std::string WithColon(const std::string& name) {
  const size_t blank = name.find(' ');
  const std::string host = name.substr(0, blank);
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", name.substr(blank + 1));
}

}  // namespace

std::string DescribePeer(std::string_view peer) {
  if (const size_t name = peer.find(kRelayed); name != std::string_view::npos)
    return DescribeRelayed(peer.substr(name));
  if (!peer.starts_with("ipv")) return std::string(peer);
  return WithColon(NameOf(peer));
}

Status Newcomers::CountUnixSockets() {
  HEDDLE_ASSIGN_OR_RETURN(relay_, UnixRelay::Start(most_bytes_));
  return OkStatus();
}

int Newcomers::Note(int fd, const SocketAddress& peer) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return fd;
  if (peer.family() == AF_UNIX && relay_ != nullptr) {
    ucred who = {0, static_cast<uid_t>(-1), 0};
    socklen_t size = sizeof(who);
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size);
    return relay_->Join(fd,
                        fmt::format("{}{}-{}-{}-{}", kRelayed, getpid(), status.st_ino, who.uid, who.pid));
  }
  if (const std::optional<std::string> name = NameOf(peer)) {
    const std::lock_guard lock(mutex_);
    newcomers_[*name] = {fd, status.st_ino};
  }
  return fd;
}

void Newcomers::Admit(const std::string& peer) {
  if (const size_t name = peer.find(kRelayed); relay_ != nullptr && name != std::string::npos)
    return relay_->Admit(peer.substr(name));
  const std::lock_guard lock(mutex_);
  if (!newcomers_.empty()) newcomers_.erase(NameOf(std::string_view(peer)));
}

std::string Newcomers::Describe() const {
  std::vector<std::string> names;
  if (relay_ != nullptr)
    for (const std::string& name : relay_->Newcomers(kMostDescribed + 1))
      names.push_back(DescribeRelayed(name));
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, newcomer] : newcomers_) {
      if (names.size() > kMostDescribed) break;
      if (IsStill(newcomer.fd, newcomer.inode)) names.push_back(WithColon(name));
    }
  }
  if (names.size() > kMostDescribed) names.back() = "others";
  return fmt::format("{}", fmt::join(names, " or "));
}

int Newcomers::ShutDownTalkers() {
  int talkers = relay_ != nullptr ? relay_->TakeTalkers() : 0;
  std::vector<std::string> ended;
  std::unique_lock lock(mutex_);
  std::erase_if(newcomers_, [&](const auto& entry) {
    const Newcomer& newcomer = entry.second;
    if (!IsStill(newcomer.fd, newcomer.inode)) {
      ended.push_back(WithColon(entry.first));
      return true;
    }
    if (ReceivedBytes(newcomer.fd) <= most_bytes_) return false;
    shutdown(newcomer.fd, SHUT_RDWR);
    ++talkers;
    return true;
  });
  lock.unlock();
  if (tell_ended_)
    for (const std::string& peer : ended) tell_ended_(peer);
  return talkers;
}

int Newcomers::NextLookMs() const {
  if (relay_ != nullptr && relay_->HasNewcomers()) return kLookAtManyAgainMs;
  const std::lock_guard lock(mutex_);
  if (newcomers_.empty()) return -1;
  return newcomers_.size() <= kOftenLookedAt ? kLookAgainMs : kLookAtManyAgainMs;
}

}  // namespace heddle::cluster
