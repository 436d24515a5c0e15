// SPDX-License-Identifier: Apache-2.0
#include "cluster/network/acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "cluster/network/address.h"
#include "core/environment/clock.h"
#include "core/environment/log.h"

namespace heddle::cluster {
namespace {

constexpr int kOwnDescriptors = 128;  // of the rest of the process: store, logs, library
constexpr int kMostConnections = 16'384;
constexpr int kLeastOfAPeer = 16;
constexpr int kPartsForPeers = 4;       // so many peers at their limit fill the server
constexpr int kConnectionsOfARank = 8;  // four streams at a time, and those that are just being mended
constexpr int kPauseMs = 10;            // when even the reserve did not help
constexpr int64_t kTellAgainNs = 1'000'000'000;

int DescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur, INT32_MAX));
}

int OpenReserve() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

// An answer of the kernel, at once: not an end that the other side takes for an orderly one.
void Reset(int fd) {
  const linger none = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
  close(fd);
}

uid_t UserOf(int unix_socket) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  getsockopt(unix_socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  return credentials.uid;
}
bool IsOfOwnUser(int unix_socket) {
  const uid_t user = UserOf(unix_socket);
  return user == geteuid() || user == 0;
}

// Who is at the other end, as far as the limit goes: an address without its port, or a user.
std::string PeerOf(int fd, const SocketAddress& address) {
  if (address.family() == AF_UNIX) return fmt::format("user {}", UserOf(fd));
  if (address.family() == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
    return std::string(reinterpret_cast<const char*>(&v4->sin_addr), sizeof(v4->sin_addr));
  }
  // A machine has a whole network of addresses with the same first half.
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
  const auto* bytes = reinterpret_cast<const char*>(&v6->sin6_addr);
  if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) return std::string(bytes + 12, 4);
  return std::string(bytes, 8);
}

// The connections that somebody else closes. A socket is known by its inode, which no other has while it is
// open: so one can see later whether a descriptor is still that socket.
class OpenConnections {
 public:
  explicit OpenConnections(const ConnectionLimits& limits) : limits_(limits) {}

  /// Notes a connection, or says no.
  bool Admit(int fd, const std::string& peer) {
    if (total_ >= limits_.most) ForgetClosed();
    std::vector<Entry>& of_peer = by_peer_[peer];
    if (static_cast<int>(of_peer.size()) >= limits_.most_of_a_peer) ForgetClosed(&of_peer);
    struct stat status {};
    const bool admitted = total_ < limits_.most &&
                          static_cast<int>(of_peer.size()) < limits_.most_of_a_peer &&
                          fstat(fd, &status) == 0;
    if (admitted) {
      of_peer.push_back({fd, status.st_ino});
      ++total_;
    }
    if (of_peer.empty()) by_peer_.erase(peer);
    return admitted;
  }

 private:
  struct Entry {
    int fd = -1;
    ino_t inode = 0;
  };

  void ForgetClosed(std::vector<Entry>* entries) {
    total_ -= static_cast<int>(std::erase_if(*entries, [](const Entry& entry) {
      struct stat status {};
      return fstat(entry.fd, &status) != 0 || status.st_ino != entry.inode;
    }));
  }
  void ForgetClosed() {
    for (auto& [peer, entries] : by_peer_) ForgetClosed(&entries);
    std::erase_if(by_peer_, [](const auto& peer) { return peer.second.empty(); });
  }

  const ConnectionLimits limits_;
  std::map<std::string, std::vector<Entry>> by_peer_;
  int total_ = 0;
};

class AcceptorImpl : public Acceptor {
 public:
  AcceptorImpl(const ConnectionLimits& limits, std::shared_ptr<Newcomers> newcomers)
      : connections_(limits), only_own_user_(limits.only_own_user), newcomers_(std::move(newcomers)) {}
  ~AcceptorImpl() override {
    if (thread_.joinable()) {
      const uint64_t one = 1;
      (void)!write(stop_, &one, sizeof(one));
      thread_.join();
    }
    for (const int fd : listeners_) close(fd);
    if (reserve_ >= 0) close(reserve_);
    if (stop_ >= 0) close(stop_);
    if (const std::string path = SocketPath(address_); !listeners_.empty() && !path.empty())
      unlink(path.c_str());
  }

  Status Bind(const std::string& address) {
    stop_ = eventfd(0, EFD_CLOEXEC);
    reserve_ = OpenReserve();
    if (stop_ < 0 || reserve_ < 0) return Unavailable("cannot listen on {}: {}", address, strerror(errno));
    HEDDLE_ASSIGN_OR_RETURN(std::vector<SocketAddress> all, Resolve(address));
    address_ = address;
    int error = EADDRNOTAVAIL;
    for (SocketAddress& one : all) {
      if (port_ != 0) SetPort(&one);  // any port: the same for all addresses of a name
      if (const int failed = BindOne(one); failed != 0) error = failed;
    }
    if (listeners_.empty()) return Unavailable("cannot listen on {}: {}", address, strerror(error));
    if (!IsUnixAddress(address))
      address_ = fmt::format("{}:{}", address.substr(0, address.rfind(':')), ntohs(port_));
    return OkStatus();
  }

  const std::string& address() const override { return address_; }

  void Start(Taker taker) override {
    taker_ = std::move(taker);
    thread_ = std::thread([this] { Run(); });
  }

 private:
  // 0 or errno.
  int BindOne(const SocketAddress& address) {
    const int fd = socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return errno;
    const int yes = 1;
    const int no = 0;
    if (address.family() != AF_UNIX) {
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    }
    // [::] stands for all addresses of both kinds.
    if (address.family() == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    SocketAddress bound;
    bound.size = sizeof(bound.storage);
    if (bind(fd, address.get(), address.size) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, bound.get(), &bound.size) != 0) {
      const int error = errno;
      close(fd);
      return error;
    }
    if (port_ == 0) port_ = PortOf(bound);
    listeners_.push_back(fd);
    return 0;
  }

  static in_port_t PortOf(const SocketAddress& address) {
    if (address.family() == AF_INET) return reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port;
    if (address.family() == AF_INET6)
      return reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port;
    return 0;
  }
  void SetPort(SocketAddress* address) const {
    if (address->family() == AF_INET) reinterpret_cast<sockaddr_in*>(&address->storage)->sin_port = port_;
    if (address->family() == AF_INET6) reinterpret_cast<sockaddr_in6*>(&address->storage)->sin6_port = port_;
  }

  void Run() {
    std::vector<pollfd> polled = {{stop_, POLLIN, 0}};
    for (const int fd : listeners_) polled.push_back({fd, POLLIN, 0});
    for (;;) {
      const int patience_ms = newcomers_ != nullptr ? newcomers_->NextLookMs() : -1;
      if (poll(polled.data(), polled.size(), patience_ms) < 0) continue;  // a signal
      if (polled[0].revents != 0) return;
      if (patience_ms >= 0)
        for (int talkers = newcomers_->ShutDownTalkers(); talkers > 0; --talkers)
          TellRefusal("too much was sent before a call was let in");
      for (size_t i = 1; i < polled.size(); ++i)
        if (polled[i].revents != 0 && !AcceptSome(polled[i].fd)) poll(polled.data(), 1, kPauseMs);
    }
  }

  // False where nothing can be done at present. A few at a time, so that no listener waits for another.
  bool AcceptSome(int listener) {
    constexpr int kAtATime = 64;
    for (int i = 0; i < kAtATime; ++i) {
      SocketAddress peer;
      peer.size = sizeof(peer.storage);
      const int fd = accept4(listener, peer.get(), &peer.size, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) {
        Take(fd, peer);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return true;
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        if (!RefuseByReserve(listener)) return false;
      }  // else this one connection has failed
    }
    return true;
  }

  void Take(int fd, const SocketAddress& peer) {
    if (only_own_user_ && peer.family() == AF_UNIX && !IsOfOwnUser(fd)) {
      Reset(fd);
      return TellRefusal("another user");
    }
    if (!connections_.Admit(fd, PeerOf(fd, peer))) {
      Reset(fd);
      return TellRefusal("too many connections");
    }
    const int taken = newcomers_ != nullptr ? newcomers_->Note(fd, peer) : fd;
    if (taken < 0) return TellRefusal("no descriptor is free");
    taker_(taken);
  }

  bool RefuseByReserve(int listener) {
    if (reserve_ >= 0) close(reserve_);
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) Reset(fd);
    reserve_ = OpenReserve();
    TellRefusal("no descriptor is free");
    return fd >= 0 && reserve_ >= 0;
  }

  void TellRefusal(const char* why) {
    ++refused_;
    const int64_t now_ns = SystemClock().MonotonicNs();
    if (now_ns < tell_at_ns_) return;
    tell_at_ns_ = now_ns + kTellAgainNs;
    HEDDLE_LOG(kWarning, "connections refused", {"address", address_}, {"why", why},
               {"number", std::exchange(refused_, 0)});
  }

  OpenConnections connections_;
  const bool only_own_user_;
  const std::shared_ptr<Newcomers> newcomers_;
  std::string address_;
  in_port_t port_ = 0;  // of the network's order
  std::vector<int> listeners_;
  int stop_ = -1;
  int reserve_ = -1;
  int64_t refused_ = 0;
  int64_t tell_at_ns_ = 0;
  Taker taker_;
  std::thread thread_;
};

}  // namespace

ConnectionLimits LimitsForStrangers(int descriptors) {
  const int limit = DescriptorLimit();
  const int most =
      std::clamp((limit - std::min(kOwnDescriptors, limit / 2)) / descriptors, 1, kMostConnections);
  return {most, std::min(most, std::max(kLeastOfAPeer, most / kPartsForPeers))};
}

ConnectionLimits LimitsForPeers(int peers) {
  const int most =
      std::min(LimitsForStrangers().most, kConnectionsOfARank * std::max(peers, 1) + kLeastOfAPeer);
  return {most, most, /*only_own_user=*/true};
}

Result<std::unique_ptr<Acceptor>> Acceptor::Listen(const std::string& address, const ConnectionLimits& limits,
                                                   std::shared_ptr<Newcomers> newcomers) {
  auto acceptor = std::make_unique<AcceptorImpl>(limits, std::move(newcomers));
  HEDDLE_RETURN_IF_ERROR(acceptor->Bind(address));
  return std::unique_ptr<Acceptor>(std::move(acceptor));
}

}  // namespace heddle::cluster
