// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/host_peers.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cluster/link/host_socket.h"
#include "ops/io/checksums/sha256.h"

namespace heddle::cluster {
namespace {

constexpr size_t kSecretBytes = 32;

std::string_view Bytes(const ops::Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string Hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace

HostPeers::HostPeers(const Hello& own, std::unique_ptr<SharedInbox> inbox)
    : key_(Bytes(ops::Sha256({own.token, "\n", own.job, "\n", std::to_string(own.attempt)}))),
      rank_(static_cast<size_t>(own.rank)),
      own_(std::move(inbox)),
      peers_(static_cast<size_t>(own.ranks)) {}

std::string HostPeers::SecretOf(std::string_view what, size_t from, size_t to) const {
  return std::string(Bytes(ops::HmacSha256(key_, {what, fmt::format(" {} {}", from, to)})));
}

std::string HostPeers::NameOf(size_t rank) const {
  return "heddle-" + Hexadecimal(SecretOf("name", rank, rank));
}

Result<std::unique_ptr<HostPeers>> HostPeers::Listen(const Hello& own) {
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<SharedInbox> inbox,
                          SharedInbox::Create(static_cast<size_t>(own.ranks)));
  std::unique_ptr<HostPeers> peers(new HostPeers(own, std::move(inbox)));
  peers->listening_ = ListenOnHost(peers->NameOf(peers->rank_));
  if (!peers->listening_.ok())
    return Unavailable("peers of this machine cannot be answered: {}", std::strerror(errno));
  peers->thread_ = std::thread([owner = peers.get()] { owner->Answer(); });
  return peers;
}

HostPeers::~HostPeers() {
  if (!thread_.joinable()) return;
  shutdown(listening_.get(), SHUT_RDWR);
  thread_.join();
}

void HostPeers::FindPeers() {
  for (size_t rank = 0; rank < rank_; ++rank) Ask(rank);
}

void HostPeers::Settle() {
  const std::lock_guard lock(mutex_);
  is_settled_ = true;
}

bool HostPeers::ReachesAny() const {
  return std::ranges::any_of(peers_, [](const Peer& peer) { return peer.is_reached.load(); });
}

// --- the exchange: each end gives its inbox; the larger rank then says that it has what it needs ---

Status HostPeers::Take(size_t rank, const Descriptor& inbox) {
  Peer& peer = peers_[rank];
  HEDDLE_RETURN_IF_ERROR(own_->ReserveMessages(rank));
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<SharedInbox> opened,
                          SharedInbox::Open(inbox, peers_.size(), rank_));
  const std::lock_guard lock(mutex_);
  if (is_settled_ || peer.inbox != nullptr) return Unavailable("the exchange is over");
  peer.inbox = std::move(opened);
  peer.shown.store(peer.inbox.get(), std::memory_order_release);
  return OkStatus();
}

void HostPeers::Answer() {
  while (true) {
    const Descriptor caller = AcceptOnHost(listening_);
    if (!caller.ok()) return;
    if (IsOfThisUser(caller)) AnswerOne(caller);
  }
}

void HostPeers::AnswerOne(const Descriptor& caller) {
  std::string said;
  Descriptor inbox;
  uint32_t rank = 0;
  if (!ReceivePacket(caller, &said, &inbox) || said.size() != kSecretBytes + sizeof(rank)) return;
  std::memcpy(&rank, said.data() + kSecretBytes, sizeof(rank));
  said.resize(kSecretBytes);
  if (rank <= rank_ || rank >= peers_.size() || !EqualInConstantTime(said, SecretOf("asks", rank, rank_)))
    return;
  if (!Take(rank, inbox).ok() || !SendPacket(caller, SecretOf("answers", rank_, rank), own_->descriptor()))
    return;
  // Without these words it cannot answer: then nothing is asked of it.
  Descriptor none;
  if (!ReceivePacket(caller, &said, &none) || !EqualInConstantTime(said, SecretOf("takes", rank, rank_)))
    return;
  const std::lock_guard lock(mutex_);
  if (!is_settled_) peers_[rank].is_reached.store(true, std::memory_order_release);
}

void HostPeers::Ask(size_t rank) {
  const Descriptor peer = ConnectOnHost(NameOf(rank));
  if (!peer.ok() || !IsOfThisUser(peer)) return;
  const auto own = static_cast<uint32_t>(rank_);
  std::string question = SecretOf("asks", rank_, rank);
  question.append(reinterpret_cast<const char*>(&own), sizeof(own));
  std::string said;
  Descriptor inbox;
  if (!SendPacket(peer, question, own_->descriptor()) || !ReceivePacket(peer, &said, &inbox) ||
      !EqualInConstantTime(said, SecretOf("answers", rank, rank_)) || !Take(rank, inbox).ok())
    return;
  // Whoever gave its inbox has that of this rank, so it answers.
  peers_[rank].is_reached.store(true, std::memory_order_release);
  if (SendPacket(peer, SecretOf("takes", rank_, rank))) (void)ReceivePacket(peer, &said, &inbox);
}

}  // namespace heddle::cluster
