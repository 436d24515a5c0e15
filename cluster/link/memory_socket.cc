// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/memory_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

#include "cluster/security/token.h"
#include "engine/wire/bytes.h"

namespace heddle::cluster {
namespace {

constexpr std::string_view kNamePrefix = "heddle-memory-";
constexpr size_t kNameBytes = kNamePrefix.size() + 32;
constexpr size_t kMostPacketBytes = 8 << 10;  // a hello: its token has at most 4 KiB

// An abstract address: a zero byte, then the name.
socklen_t FillAddress(const std::string& name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  memcpy(address->sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

Descriptor NewSocket() {
  return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

MemorySocket::Outcome OutcomeOfError() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS
             ? MemorySocket::Outcome::kLater
             : MemorySocket::Outcome::kClosed;
}

}  // namespace

std::string Packet::Encode() const {
  std::string bytes;
  engine::Append(&bytes, kind);
  for (const uint64_t part : {handle.arena, handle.offset, handle.bytes, handle.generation})
    engine::Append(&bytes, part);
  const auto encoded = header.Encode();
  bytes.append(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  return bytes;
}

Result<Packet> Packet::Decode(std::string_view bytes) {
  Packet packet;
  if (!engine::Take(&bytes, &packet.kind) || packet.kind < PacketKind::kWelcome ||
      packet.kind > PacketKind::kReturn)
    return DataLoss("a packet of unknown kind");
  for (uint64_t* part :
       {&packet.handle.arena, &packet.handle.offset, &packet.handle.bytes, &packet.handle.generation})
    if (!engine::Take(&bytes, part)) return DataLoss("a packet is cut off");
  if (bytes.size() != engine::kHeaderBytes) return DataLoss("a packet of the wrong length");
  HEDDLE_ASSIGN_OR_RETURN(packet.header,
                          engine::FrameHeader::Decode(reinterpret_cast<const uint8_t*>(bytes.data())));
  return packet;
}

std::string EncodeHello(const Hello& hello) {
  std::string bytes;
  engine::AppendText(&bytes, hello.token);
  engine::AppendText(&bytes, hello.job);
  engine::Append(&bytes, int32_t{hello.attempt});
  engine::Append(&bytes, int32_t{hello.ranks});
  engine::Append(&bytes, int32_t{hello.rank});
  return bytes;
}

bool CheckHello(const Hello& own, std::string_view bytes, int* rank) {
  std::string token;
  std::string job;
  int32_t attempt = 0;
  int32_t ranks = 0;
  int32_t caller = 0;
  if (!engine::TakeText(&bytes, &token) || !EqualInConstantTime(token, own.token)) return false;
  if (!engine::TakeText(&bytes, &job) || !engine::Take(&bytes, &attempt) || !engine::Take(&bytes, &ranks) ||
      !engine::Take(&bytes, &caller) || !bytes.empty())
    return false;
  *rank = caller;
  return job == own.job && attempt == own.attempt && ranks == own.ranks && caller >= 0 &&
         caller < own.ranks && caller != own.rank;
}

Result<MemorySocket> MemorySocket::Listen(const std::string& name) {
  Descriptor descriptor = NewSocket();
  sockaddr_un address;
  const socklen_t size = FillAddress(name, &address);
  if (descriptor.get() < 0 || bind(descriptor.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(descriptor.get(), SOMAXCONN) != 0)
    return Unavailable("no socket for shared memory: {}", strerror(errno));
  return MemorySocket(std::move(descriptor));
}

Result<MemorySocket> MemorySocket::Connect(const std::string& name) {
  Descriptor descriptor = NewSocket();
  sockaddr_un address;
  const socklen_t size = FillAddress(name, &address);
  if (descriptor.get() < 0 || connect(descriptor.get(), reinterpret_cast<sockaddr*>(&address), size) != 0)
    return Unavailable("no socket for shared memory: {}", strerror(errno));
  return MemorySocket(std::move(descriptor));
}

std::string MemorySocket::MakeName() { return std::string(kNamePrefix) + MakeToken(); }

bool MemorySocket::IsName(std::string_view name) {
  return name.size() == kNameBytes && name.starts_with(kNamePrefix) &&
         name.find('\0') == std::string_view::npos;
}

std::optional<MemorySocket> MemorySocket::Accept() const {
  Descriptor caller(accept4(fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (caller.get() < 0) return std::nullopt;
  return MemorySocket(std::move(caller));
}

bool MemorySocket::IsOfOwnUser() const {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  return getsockopt(fd(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 && credentials.uid == geteuid();
}

MemorySocket::Outcome MemorySocket::Send(std::string_view packet, int descriptor) const {
  iovec part = {const_cast<char*>(packet.data()), packet.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  return sendmsg(fd(), &message, MSG_NOSIGNAL) >= 0 ? Outcome::kDone : OutcomeOfError();
}

MemorySocket::Outcome MemorySocket::Receive(std::string* packet, Descriptor* descriptor) const {
  char bytes[kMostPacketBytes];
  iovec part = {bytes, sizeof(bytes)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t size = recvmsg(fd(), &message, MSG_CMSG_CLOEXEC);
  if (size < 0) return OutcomeOfError();
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int received = -1;
    memcpy(&received, CMSG_DATA(header), sizeof(int));
    *descriptor = Descriptor(received);
  }
  if (size == 0 || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return Outcome::kClosed;
  packet->assign(bytes, static_cast<size_t>(size));
  return Outcome::kDone;
}

}  // namespace heddle::cluster
