// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/host_socket.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace heddle::cluster {
namespace {

constexpr size_t kMostPacketBytes = 256;

struct Address {
  explicit Address(std::string_view text) {
    name.sun_family = AF_UNIX;
    const size_t size = std::min(text.size(), sizeof(name.sun_path) - 1);
    std::memcpy(name.sun_path + 1, text.data(), size);
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
  sockaddr_un name{};
  socklen_t bytes = 0;
};

Descriptor NewSocket(int flags = 0) {
  return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
}

void BoundWaits(const Descriptor& socket) {
  const timeval wait{.tv_sec = kHostSocketPatienceMs / 1000, .tv_usec = kHostSocketPatienceMs % 1000 * 1000};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
}

// Room for one descriptor is room for two, because of padding; the kernel drops what does not fit.
union ControlBytes {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

msghdr MessageOf(iovec* part, ControlBytes* control) {
  msghdr message{};
  message.msg_iov = part;
  message.msg_iovlen = 1;
  message.msg_control = control->bytes.data();
  message.msg_controllen = control->bytes.size();
  return message;
}

}  // namespace

Descriptor ListenOnHost(std::string_view name) {
  Descriptor listening = NewSocket(SOCK_NONBLOCK);
  const Address address(name);
  if (bind(listening.get(), address.get(), address.bytes) != 0 || listen(listening.get(), SOMAXCONN) != 0)
    return Descriptor();
  return listening;
}

Descriptor ConnectOnHost(std::string_view name) {
  Descriptor connected = NewSocket();
  const Address address(name);
  if (connected.ok()) BoundWaits(connected);
  if (connect(connected.get(), address.get(), address.bytes) != 0) return Descriptor();
  return connected;
}

Descriptor AcceptOnHost(const Descriptor& listening) {
  Descriptor caller(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (caller.ok()) BoundWaits(caller);
  return caller;
}

bool IsOfThisUser(const Descriptor& socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

bool SendPacket(const Descriptor& socket, std::string_view text, int descriptor) {
  iovec part{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  ControlBytes control{};
  msghdr message = MessageOf(&part, &control);
  if (descriptor >= 0) {
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  } else {
    message.msg_control = nullptr;
    message.msg_controllen = 0;
  }
  return sendmsg(socket.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

bool ReceivePacket(const Descriptor& socket, std::string* text, Descriptor* descriptor) {
  text->resize(kMostPacketBytes);
  iovec part{.iov_base = text->data(), .iov_len = text->size()};
  ControlBytes control{};
  msghdr message = MessageOf(&part, &control);
  const ssize_t got = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  text->resize(got < 0 ? 0 : static_cast<size_t>(got));
  if (got <= 0) return false;
  size_t descriptors = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (size_t begin = 0; CMSG_LEN(begin + sizeof(int)) <= header->cmsg_len; begin += sizeof(int)) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(header) + begin, sizeof(int));
      *descriptor = Descriptor(received);
      ++descriptors;
    }
  }
  if (descriptors > 1) *descriptor = Descriptor();
  return (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 && descriptors <= 1;
}

}  // namespace heddle::cluster
