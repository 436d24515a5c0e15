// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/inbox_exchange.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "ops/io/files/sha256.h"

namespace heddle::cluster {
namespace {

constexpr int kWaitSeconds = 2;  // For a word of a peer.
constexpr size_t kSecretBytes = 32;

struct Address {
  sockaddr_un name{};
  socklen_t bytes = 0;
};

// In the namespace of Linux that has no files: the name goes with the socket.
Address AddressOf(const std::string& name) {
  Address address;
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path + 1, name.data(), name.size());
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

std::string_view Bytes(const ops::Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string Hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

bool IsOfThisUser(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

void BoundWaits(int socket) {
  const timeval wait{.tv_sec = kWaitSeconds, .tv_usec = 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
}

// One packet with a descriptor.
union ControlBytes {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

bool SendDescriptor(int socket, std::string text, int descriptor) {
  iovec part{.iov_base = text.data(), .iov_len = text.size()};
  ControlBytes control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

Descriptor ReceiveDescriptor(int socket, std::string* text) {
  text->resize(64);
  iovec part{.iov_base = text->data(), .iov_len = text->size()};
  ControlBytes control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  text->resize(got < 0 ? 0 : static_cast<size_t>(got));
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (got <= 0 || header == nullptr || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int)))
    return Descriptor();
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
  return Descriptor(descriptor);
}

}  // namespace

InboxExchange::InboxExchange(const Hello& own, const SharedInbox& own_inbox, OnPeer on_peer)
    : key_(Bytes(ops::Sha256({own.token, "\n", own.job, "\n", std::to_string(own.attempt)}))),
      rank_(static_cast<size_t>(own.rank)),
      ranks_(static_cast<size_t>(own.ranks)),
      own_inbox_(own_inbox),
      on_peer_(std::move(on_peer)) {}

std::string InboxExchange::SecretOf(std::string_view what, size_t from, size_t to) const {
  return std::string(Bytes(ops::HmacSha256(key_, {what, fmt::format(" {} {}", from, to)})));
}

std::string InboxExchange::NameOf(size_t rank) const {
  return "heddle-" + Hexadecimal(SecretOf("name", rank, rank));
}

Result<std::unique_ptr<InboxExchange>> InboxExchange::Listen(const Hello& own, const SharedInbox& own_inbox,
                                                             OnPeer on_peer) {
  std::unique_ptr<InboxExchange> exchange(new InboxExchange(own, own_inbox, std::move(on_peer)));
  const Address address = AddressOf(exchange->NameOf(exchange->rank_));
  exchange->listening_ = Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const int descriptor = exchange->listening_.get();
  if (descriptor < 0 ||
      bind(descriptor, reinterpret_cast<const sockaddr*>(&address.name), address.bytes) != 0 ||
      listen(descriptor, SOMAXCONN) != 0)
    return Unavailable("peers of this machine cannot be answered: {}", std::strerror(errno));
  exchange->thread_ = std::thread([owner = exchange.get()] { owner->Answer(); });
  return exchange;
}

InboxExchange::~InboxExchange() {
  if (!thread_.joinable()) return;
  shutdown(listening_.get(), SHUT_RDWR);
  thread_.join();
}

void InboxExchange::Answer() {
  while (true) {
    const Descriptor peer(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (peer.ok()) {
      AnswerOne(peer);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void InboxExchange::AnswerOne(const Descriptor& peer) {
  if (!IsOfThisUser(peer.get())) return;
  BoundWaits(peer.get());
  std::string said;
  const Descriptor inbox = ReceiveDescriptor(peer.get(), &said);
  uint32_t rank = 0;
  if (said.size() != kSecretBytes + sizeof(rank)) return;
  std::memcpy(&rank, said.data() + kSecretBytes, sizeof(rank));
  said.resize(kSecretBytes);
  if (rank >= ranks_ || rank == rank_ || !EqualInConstantTime(said, SecretOf("asks", rank, rank_))) return;
  Result<std::unique_ptr<SharedInbox>> opened = SharedInbox::Open(inbox, ranks_);
  if (!opened.ok()) return;
  on_peer_(rank, *std::move(opened));
  SendDescriptor(peer.get(), SecretOf("answers", rank_, rank), own_inbox_.descriptor());
}

std::unique_ptr<SharedInbox> InboxExchange::Ask(size_t rank) const {
  const Descriptor peer(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const Address address = AddressOf(NameOf(rank));
  if (!peer.ok()) return nullptr;
  BoundWaits(peer.get());
  if (connect(peer.get(), reinterpret_cast<const sockaddr*>(&address.name), address.bytes) != 0 ||
      !IsOfThisUser(peer.get()))
    return nullptr;
  const auto own = static_cast<uint32_t>(rank_);
  std::string question = SecretOf("asks", rank_, rank);
  question.append(reinterpret_cast<const char*>(&own), sizeof(own));
  if (!SendDescriptor(peer.get(), std::move(question), own_inbox_.descriptor())) return nullptr;
  std::string said;
  const Descriptor inbox = ReceiveDescriptor(peer.get(), &said);
  if (!EqualInConstantTime(said, SecretOf("answers", rank, rank_))) return nullptr;
  Result<std::unique_ptr<SharedInbox>> opened = SharedInbox::Open(inbox, ranks_);
  return opened.ok() ? *std::move(opened) : nullptr;
}

}  // namespace heddle::cluster
