// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/host_messages.h"

#include <utility>

#include "actor/doorbell.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kPatienceNs = 2'000'000;
constexpr int64_t kForeverNs = 3'600'000'000'000;

}  // namespace

HostMessages::HostMessages(const HostPeers& peers) : host_(peers), own_(peers.own()), peers_(peers.ranks()) {
  for (size_t from = 0; from < peers_.size(); ++from) peers_[from].reader.emplace(own_.messages(from));
}

void HostMessages::Serve(Events events) {
  events_ = std::move(events);
  thread_ = std::thread([this] { Look(); });
}

void HostMessages::Stop() {
  if (!thread_.joinable()) return;
  stops_.store(true, std::memory_order_seq_cst);
  // The thread may be about to sleep at either.
  actor::Ring(own_.doorbell_of_thread(), actor::DoorbellReach::kMachine);
  actor::Ring(patience_, actor::DoorbellReach::kProcess);
  thread_.join();
}

// --- sending ---

void HostMessages::RingPeer(size_t rank) {
  const SharedInbox* const inbox = host_.inbox(rank);
  if (inbox != nullptr && inbox->RingForMessages()) wakes_.fetch_add(1, std::memory_order_relaxed);
}

void HostMessages::Send(size_t rank, std::span<const AnnouncedMessage> messages) {
  Peer& peer = peers_[rank];
  {
    const std::lock_guard lock(peer.mutex);
    if (!peer.writer) peer.writer.emplace(host_.inbox(rank)->messages(host_.rank()));
    for (const AnnouncedMessage& message : messages) {
      if (peer.left.empty() && peer.writer->Append({message.bytes(), message.small_value})) continue;
      if (peer.left.empty()) peers_with_left_.fetch_add(1, std::memory_order_seq_cst);
      peer.left.push_back(std::string(message.bytes()) + message.small_value);
    }
    peer.writer->Publish();
    if (!peer.left.empty()) SendLeft(peer);
  }
  RingPeer(rank);
}

// What there is room for; true if that was something. Where records are left, the peer rings once it has made
// room.
bool HostMessages::SendLeft(Peer& peer) {
  bool has_sent = false;
  do {
    while (!peer.left.empty() && peer.writer->Append({peer.left.front()})) {
      peer.left.pop_front();
      has_sent = true;
      if (peer.left.empty()) peers_with_left_.fetch_sub(1, std::memory_order_seq_cst);
    }
  } while (!peer.left.empty() && peer.writer->HasRoomOrAsks());
  if (has_sent) peer.writer->Publish();
  return has_sent;
}

// Whoever sleeps next has asked each peer for the room that is missing.
bool HostMessages::CanSendLeft() const {
  if (peers_with_left_.load(std::memory_order_seq_cst) == 0) return false;
  bool can_send = false;
  for (Peer& peer : peers_) {
    const std::lock_guard lock(peer.mutex);
    can_send |= !peer.left.empty() && peer.writer->HasRoomOrAsks();
  }
  return can_send;
}

// --- receiving ---

bool HostMessages::HasMessages() const {
  for (size_t rank = 0; rank < peers_.size(); ++rank)
    if (rank != host_.rank() && !peers_[rank].is_broken && peers_[rank].reader->HasRecords()) return true;
  return CanSendLeft();
}

bool HostMessages::Begin() {
  if (is_begun_.exchange(true, std::memory_order_seq_cst)) return false;
  looks_.fetch_add(1, std::memory_order_seq_cst);
  // The thread need not be woken for every record any more.
  if (thread_looks_.exchange(false, std::memory_order_seq_cst))
    actor::Ring(own_.doorbell_of_thread(), actor::DoorbellReach::kMachine);
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
    if (rank != host_.rank() && !peers_[rank].is_broken) has_delivered |= Read(rank, peers_[rank]);
  if (peers_with_left_.load(std::memory_order_seq_cst) == 0) return has_delivered;
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    Peer& peer = peers_[rank];
    bool has_sent = false;
    {
      const std::lock_guard left(peer.mutex);
      has_sent = !peer.left.empty() && SendLeft(peer);
    }
    if (has_sent) RingPeer(rank);
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
  if (has_read && peer.reader->Release()) RingPeer(rank);
  return has_read;
}

// The thread.
void HostMessages::Look() {
  while (!stops_.load(std::memory_order_seq_cst)) {
    if (!thread_looks_.load(std::memory_order_seq_cst)) {
      LetOthersLook();
    } else if (HasMessages()) {
      Deliver();
    } else {
      std::atomic<uint32_t>& doorbell = own_.doorbell_of_thread();
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
