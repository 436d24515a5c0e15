// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/host_messages.h"

#include <utility>

#include "actor/doorbell.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kPatienceNs = 2'000'000;
constexpr int64_t kForeverNs = 3'600'000'000'000;

}  // namespace

HostMessages::HostMessages(size_t rank, std::unique_ptr<SharedInbox> own, size_t ranks)
    : rank_(rank), own_(std::move(own)), peers_(ranks) {
  for (size_t from = 0; from < ranks; ++from)
    peers_[from].reader = std::make_unique<RingReader>(own_->positions(from), own_->bytes(from));
}

Result<std::unique_ptr<HostMessages>> HostMessages::Listen(const Hello& own) {
  const auto ranks = static_cast<size_t>(own.ranks);
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<SharedInbox> inbox, SharedInbox::Create(ranks));
  std::unique_ptr<HostMessages> messages(
      new HostMessages(static_cast<size_t>(own.rank), std::move(inbox), ranks));
  HEDDLE_ASSIGN_OR_RETURN(
      messages->exchange_,
      InboxExchange::Listen(own, *messages->own_,
                            [all = messages.get()](size_t rank, std::unique_ptr<SharedInbox> asker) {
                              Peer& peer = all->peers_[rank];
                              const std::lock_guard lock(peer.mutex);
                              if (peer.asker == nullptr) peer.asker = std::move(asker);
                            }));
  return messages;
}

HostMessages::~HostMessages() {
  exchange_.reset();
  if (!thread_.joinable()) return;
  stops_.store(true, std::memory_order_seq_cst);
  // The thread may be about to sleep at either.
  actor::Ring(own_->doorbell_of_thread(), actor::DoorbellReach::kMachine);
  actor::Ring(patience_, actor::DoorbellReach::kProcess);
  thread_.join();
}

void HostMessages::Serve(Events events) {
  events_ = std::move(events);
  thread_ = std::thread([this] { Look(); });
}

void HostMessages::FindPeers() {
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    if (rank == rank_) continue;
    Peer& peer = peers_[rank];
    peer.inbox = exchange_->Ask(rank);
    if (peer.inbox == nullptr) continue;
    peer.writer = std::make_unique<RingWriter>(peer.inbox->positions(rank_), peer.inbox->bytes(rank_));
    has_peers_ = true;
  }
}

// --- sending ---

void HostMessages::RingPeer(const SharedInbox& inbox) {
  if (inbox.RingDoorbells()) wakes_.fetch_add(1, std::memory_order_relaxed);
}

void HostMessages::Send(size_t rank, std::span<const AnnouncedMessage> messages) {
  Peer& peer = peers_[rank];
  {
    const std::lock_guard lock(peer.mutex);
    for (const AnnouncedMessage& message : messages) {
      if (peer.left.empty() && peer.writer->Append({message.bytes(), message.small_value})) continue;
      if (peer.left.empty()) peers_with_left_.fetch_add(1, std::memory_order_seq_cst);
      peer.left.push_back(std::string(message.bytes()) + message.small_value);
    }
    peer.writer->Publish();
    if (!peer.left.empty()) SendLeft(peer);
  }
  RingPeer(*peer.inbox);
}

// What there is room for; true if that was something. Where records are left, the peer rings once it has made
// room.
bool HostMessages::SendLeft(Peer& peer) {
  bool has_sent = false;
  for (bool has_asked = false; !peer.left.empty();) {
    if (peer.writer->Append({peer.left.front()})) {
      peer.left.pop_front();
      has_sent = true;
      if (peer.left.empty()) peers_with_left_.fetch_sub(1, std::memory_order_seq_cst);
    } else if (!std::exchange(has_asked, true)) {
      peer.writer->AskForRoom();
    } else {
      break;
    }
  }
  if (has_sent) peer.writer->Publish();
  return has_sent;
}

bool HostMessages::CanSendLeft() const {
  if (peers_with_left_.load(std::memory_order_seq_cst) == 0) return false;
  for (Peer& peer : peers_) {
    const std::lock_guard lock(peer.mutex);
    if (!peer.left.empty() && peer.writer->HasRoom()) return true;
  }
  return false;
}

// --- receiving ---

bool HostMessages::HasMessages() const {
  for (size_t rank = 0; rank < peers_.size(); ++rank)
    if (rank != rank_ && !peers_[rank].is_broken && peers_[rank].reader->HasRecords()) return true;
  return CanSendLeft();
}

bool HostMessages::Begin() {
  if (is_begun_.exchange(true, std::memory_order_seq_cst)) return false;
  looks_.fetch_add(1, std::memory_order_seq_cst);
  // The thread need not be woken for every record any more.
  if (thread_looks_.exchange(false, std::memory_order_seq_cst))
    actor::Ring(own_->doorbell_of_thread(), actor::DoorbellReach::kMachine);
  return true;
}

void HostMessages::HandBack() {
  if (thread_looks_.exchange(true, std::memory_order_seq_cst)) return;
  actor::Ring(patience_, actor::DoorbellReach::kProcess);
}

bool HostMessages::Deliver() {
  looks_.fetch_add(1, std::memory_order_relaxed);
  if (!HasMessages()) return false;
  const std::lock_guard lock(delivery_);
  bool has_delivered = false;
  for (size_t rank = 0; rank < peers_.size(); ++rank)
    if (rank != rank_ && !peers_[rank].is_broken) has_delivered |= Read(rank, peers_[rank]);
  if (peers_with_left_.load(std::memory_order_seq_cst) == 0) return has_delivered;
  for (Peer& peer : peers_) {
    bool has_sent = false;
    {
      const std::lock_guard left(peer.mutex);
      has_sent = !peer.left.empty() && SendLeft(peer);
    }
    if (has_sent) RingPeer(*peer.inbox);
  }
  return has_delivered;
}

bool HostMessages::Read(size_t rank, Peer& peer) {
  bool has_read = false;
  while (true) {
    const Result<bool> next = peer.reader->Next(&record_);
    if (!next.ok()) {
      peer.is_broken = true;
      events_.broken(rank, next.status());
      return has_read;
    }
    if (!*next) break;
    has_read = true;
    events_.deliver(rank, record_);
  }
  if (!has_read || !peer.reader->Release()) return has_read;
  const std::lock_guard lock(peer.mutex);
  if (peer.asker != nullptr) RingPeer(*peer.asker);
  return true;
}

// The thread.
void HostMessages::Look() {
  while (!stops_.load(std::memory_order_seq_cst)) {
    if (!thread_looks_.load(std::memory_order_seq_cst)) {
      LetOthersLook();
    } else if (HasMessages()) {
      Deliver();
    } else {
      std::atomic<uint32_t>& doorbell = own_->doorbell_of_thread();
      doorbell.store(1, std::memory_order_seq_cst);
      if (!HasMessages() && thread_looks_.load(std::memory_order_seq_cst) &&
          !stops_.load(std::memory_order_seq_cst))
        actor::SleepAt(doorbell, actor::DoorbellReach::kMachine, kForeverNs);
      doorbell.store(0, std::memory_order_seq_cst);
    }
  }
}

// Sees after a while whether others still look. One that has begun may be at something that takes long: then
// this thread helps out.
void HostMessages::LetOthersLook() {
  const uint64_t looks = looks_.load(std::memory_order_seq_cst);
  patience_.store(1, std::memory_order_seq_cst);
  if (!thread_looks_.load(std::memory_order_seq_cst) && !stops_.load(std::memory_order_seq_cst))
    actor::SleepAt(patience_, actor::DoorbellReach::kProcess, kPatienceNs);
  patience_.store(0, std::memory_order_seq_cst);
  if (looks_.load(std::memory_order_seq_cst) != looks) return;
  if (is_begun_.load(std::memory_order_seq_cst))
    Deliver();
  else
    thread_looks_.store(true, std::memory_order_seq_cst);
}

}  // namespace heddle::cluster
