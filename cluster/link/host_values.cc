// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/host_values.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "actor/doorbell.h"
#include "core/environment/log.h"
#include "core/memory/memory_budget.h"

namespace heddle::cluster {
namespace {

using actor::DoorbellReach;
using engine::FrameHeader;
using engine::FrameKind;
using engine::kHeaderBytes;

constexpr int64_t kForeverNs = 3'600'000'000'000;
// Values are cut so that a ring has room for so many pieces.
constexpr int64_t kPiecesOfRing = 16;
// The writer gets room back in this part of the ring, so that it is not woken for each piece.
constexpr uint64_t kReleasedPart = 4;
// A ring takes at most this part of what the process may hold.
constexpr int64_t kPartOfMemory = 16;
// Frames that one peer gets before the next one is served.
constexpr int kFramesInTurn = 4;
// Values that one peer may be fetching at a time; a plan has far fewer copies in flight.
constexpr size_t kMostPulls = 65'536;

// Payload begins and ends with a line of the cache: behind the size of the record there is the header in the
// rest of a line, and behind the payload what is left of its last line.
constexpr size_t kLineBytes = 64;
constexpr size_t kHeadBytes = kLineBytes - sizeof(uint32_t);
constexpr std::array<char, kLineBytes> kPadding = {};

size_t PaddingOf(size_t bytes) { return (kLineBytes - bytes % kLineBytes) % kLineBytes; }

template <typename Bytes>
std::string_view Text(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

FrameHeader ElsewhereOf(uint64_t request) {
  FrameHeader header;
  header.kind = FrameKind::kPull;
  header.request = request;
  header.last = true;
  return header;
}

}  // namespace

HostValues::HostValues(const HostPeers& peers, Counters counters)
    : host_(peers),
      own_(peers.own()),
      ring_bytes_(static_cast<int64_t>(SharedInbox::ValueBytes(peers.ranks()))),
      counters_(counters),
      peers_(peers.ranks()) {
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    peers_[rank].incoming.emplace(own_.values(rank));
    peers_[rank].asked.emplace(own_.pulls(rank));
  }
}

HostValues::~HostValues() {
  Stop();
  MemoryBudget::Process().Release(charged_bytes_);
}

void HostValues::Serve(actor::LinkHandler* handler, Events events) {
  handler_ = handler;
  events_ = std::move(events);
  server_ = std::thread([this] { AnswerAll(); });
  client_ = std::thread([this] { TakeAll(); });
}

void HostValues::Stop() {
  if (!server_.joinable()) return;
  stops_.store(true, std::memory_order_seq_cst);
  actor::Ring(own_.doorbell_of_server(), DoorbellReach::kMachine);
  actor::Ring(own_.doorbell_of_client(), DoorbellReach::kMachine);
  server_.join();
  client_.join();
}

// --- pulling: any thread ---

// Without a lock: the kernel clears all pages of the ring.
bool HostValues::ReserveRing(size_t rank) const {
  MemoryBudget& budget = MemoryBudget::Process();
  if (ring_bytes_ > budget.limit() / kPartOfMemory || !budget.TryCharge(ring_bytes_)) return false;
  const Status status = own_.ReserveValues(rank);
  if (status.ok()) return true;
  budget.Release(ring_bytes_);
  HEDDLE_LOG(kDebug, "no shared memory for values", {"rank", rank}, {"why", status.message()});
  return false;
}

// The first pull takes the memory: most pairs of executors never need it. Those that come meanwhile wait for
// it; where there is none, all of them go another way.
void HostValues::OpenRing(size_t rank, Peer& peer) {
  const bool has_room = ReserveRing(rank);
  std::map<uint64_t, std::shared_ptr<Pending>> others;
  {
    const std::lock_guard lock(mutex_);
    peer.room = has_room ? Room::kReserved : Room::kNone;
    if (has_room) {
      charged_bytes_ += ring_bytes_;
      peer.pulls.emplace(host_.inbox(rank)->pulls(host_.rank()));
      SendPulls(rank, peer);
    } else {
      others.swap(peer.pending);
      peer.unsent.clear();
    }
  }
  for (const auto& [number, pull] : others) PullElsewhere(rank, *pull);
}

void HostValues::PullElsewhere(size_t rank, Pending& pull) {
  const FrameHeader& request = pull.request;
  events_.elsewhere(rank, request.run, request.register_id, request.slot, std::move(pull.done));
}

bool HostValues::Pull(size_t rank, uint32_t run, RegisterId register_id, uint8_t slot, Done* done) {
  if (!host_.Reaches(rank)) return false;
  Peer& peer = peers_[rank];
  Status failure;
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    failure = failure_;
    if (failure.ok()) {
      if (peer.room == Room::kNone) return false;
      is_first = peer.room == Room::kUnknown;
      if (is_first) peer.room = Room::kBeingReserved;
      auto pending = std::make_shared<Pending>();
      FrameHeader& request = pending->request;
      request.kind = FrameKind::kPull;
      request.request = next_request_++;
      request.run = run;
      request.register_id = register_id;
      request.slot = slot;
      pending->done = std::move(*done);
      peer.unsent.push_back(request);
      peer.pending.emplace(request.request, std::move(pending));
      if (peer.room == Room::kReserved) SendPulls(rank, peer);
    }
  }
  if (is_first) OpenRing(rank, peer);
  if (!failure.ok()) (*done)(failure);
  return true;
}

// Under mutex_: what there is room for. The peer rings once there is more.
void HostValues::SendPulls(size_t rank, Peer& peer) {
  bool has_sent = false;
  do {
    while (!peer.unsent.empty() && peer.pulls->Append({Text(peer.unsent.front().Encode())})) {
      peer.unsent.pop_front();
      has_sent = true;
    }
  } while (!peer.unsent.empty() && peer.pulls->HasRoomOrAsks());
  if (!has_sent) return;
  peer.pulls->Publish();
  actor::Ring(host_.inbox(rank)->doorbell_of_server(), DoorbellReach::kMachine);
}

void HostValues::Fail(const Status& why) {
  std::vector<Done> abandoned;
  {
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = why;
    for (Peer& peer : peers_) {
      for (auto& [request, pending] : peer.pending) abandoned.push_back(std::move(pending->done));
      peer.pending.clear();
      peer.unsent.clear();
    }
  }
  for (const Done& done : abandoned) done(why);
}

// --- the thread that takes values in ---

// Under mutex_. Where there is no room, the peer rings once it has made some.
bool HostValues::CanSendPulls(Peer& peer) {
  return peer.room == Room::kReserved && !peer.unsent.empty() && peer.pulls->HasRoomOrAsks();
}

void HostValues::TakeAll() {
  std::atomic<uint32_t>& doorbell = own_.doorbell_of_client();
  // Of every peer, so that each that has no room has been asked for some.
  const auto has_work = [&] {
    const std::lock_guard lock(mutex_);
    bool has_any = stops_.load(std::memory_order_seq_cst);
    for (Peer& peer : peers_) {
      has_any |= CanSendPulls(peer);
      has_any |= !peer.is_client_broken && peer.incoming->HasUnread();
    }
    return has_any;
  };
  while (!stops_.load(std::memory_order_seq_cst)) {
    bool is_busy = false;
    for (size_t rank = 0; rank < peers_.size(); ++rank) is_busy |= TakeSome(rank, peers_[rank]);
    if (is_busy) continue;
    doorbell.store(1, std::memory_order_seq_cst);
    if (!has_work()) actor::SleepAt(doorbell, DoorbellReach::kMachine, kForeverNs);
    doorbell.store(0, std::memory_order_seq_cst);
  }
}

// True if something was done.
bool HostValues::TakeSome(size_t rank, Peer& peer) {
  {
    const std::lock_guard lock(mutex_);
    if (CanSendPulls(peer)) SendPulls(rank, peer);
  }
  bool has_taken = false;
  for (int i = 0; i < kFramesInTurn && !peer.is_client_broken; ++i) {
    size_t bytes = 0;
    const Result<bool> found = peer.incoming->Find(&bytes);
    if (found.ok() && !*found) break;
    const Status status = found.ok() ? TakeFrame(rank, peer, bytes) : found.status();
    if (!status.ok()) {
      peer.is_client_broken = true;
      events_.broken(rank, status);
      return true;
    }
    has_taken = true;
  }
  // Also where little was read: the writer may wait for room for the whole of a piece.
  const bool releases = peer.incoming->unreleased() * kReleasedPart >= static_cast<uint64_t>(ring_bytes_) ||
                        (peer.incoming->unreleased() > 0 && !peer.incoming->HasUnread());
  if (releases && peer.incoming->Release())
    if (const SharedInbox* const inbox = host_.inbox(rank); inbox != nullptr)
      actor::Ring(inbox->doorbell_of_server(), DoorbellReach::kMachine);
  return has_taken;
}

Status HostValues::TakeFrame(size_t rank, Peer& peer, size_t record_bytes) {
  std::array<uint8_t, kHeaderBytes> encoded;
  if (record_bytes < kHeadBytes) return DataLoss("a frame shorter than its header");
  peer.incoming->CopyPart(0, encoded.data(), encoded.size());
  HEDDLE_ASSIGN_OR_RETURN(const FrameHeader header, FrameHeader::Decode(encoded.data()));
  if (record_bytes != kHeadBytes + header.size + PaddingOf(header.size))
    return DataLoss("a frame of the wrong length");
  std::shared_ptr<Pending> pull;
  {
    const std::lock_guard lock(mutex_);
    const auto found = peer.pending.find(header.request);
    if (found != peer.pending.end()) pull = found->second;
  }
  Status status;
  if (pull != nullptr && header.kind == FrameKind::kData) {
    const Result<uint8_t*> place = pull->value.Place(header);
    status = place.status();
    if (place.ok()) peer.incoming->CopyPart(kHeadBytes, *place, header.size);
  } else if (pull != nullptr && header.kind != FrameKind::kPull) {
    // The peer could change the bytes while they are looked at: look at a copy.
    std::string payload(header.size, '\0');
    peer.incoming->CopyPart(kHeadBytes, payload.data(), payload.size());
    status = pull->value.Accept(header, payload);
  }
  peer.incoming->Skip(record_bytes);
  counters_.bytes_received->fetch_add(header.size, std::memory_order_relaxed);
  counters_.bytes_shared->fetch_add(header.size, std::memory_order_relaxed);
  const bool is_over = !status.ok() || header.last || header.kind == FrameKind::kPull;
  if (pull == nullptr || !is_over) return OkStatus();
  {
    const std::lock_guard lock(mutex_);
    if (peer.pending.erase(header.request) == 0) return OkStatus();  // It has failed meanwhile.
  }
  if (header.kind == FrameKind::kPull)
    PullElsewhere(rank, *pull);
  else
    pull->done(status.ok() ? pull->value.Finish() : Result<Value>(status));
  return OkStatus();
}

// --- the thread that answers ---

void HostValues::AnswerAll() {
  std::atomic<uint32_t>& doorbell = own_.doorbell_of_server();
  const auto has_work = [&] {
    bool has_any = stops_.load(std::memory_order_seq_cst);
    for (Peer& peer : peers_) {
      if (peer.is_server_broken) continue;
      has_any |= peer.asked->HasUnread();
      has_any |= !peer.active.empty() && peer.outgoing->HasRoomOrAsks();
    }
    return has_any;
  };
  while (!stops_.load(std::memory_order_seq_cst)) {
    bool is_busy = false;
    for (size_t rank = 0; rank < peers_.size(); ++rank) {
      Peer& peer = peers_[rank];
      if (peer.is_server_broken) continue;
      is_busy |= ReadPulls(rank, peer);
      is_busy |= SendFrames(rank, peer);
    }
    if (is_busy) continue;
    doorbell.store(1, std::memory_order_seq_cst);
    if (!has_work()) actor::SleepAt(doorbell, DoorbellReach::kMachine, kForeverNs);
    doorbell.store(0, std::memory_order_seq_cst);
  }
}

bool HostValues::ReadPulls(size_t rank, Peer& peer) {
  if (!peer.asked->HasUnread()) return false;
  while (peer.asked->HasUnread()) {
    const Status status = AcceptPull(rank, peer);
    if (status.ok()) continue;
    peer.is_server_broken = true;
    peer.active.clear();
    events_.broken(rank, status);
    return true;
  }
  if (peer.asked->Release()) actor::Ring(host_.inbox(rank)->doorbell_of_client(), DoorbellReach::kMachine);
  return true;
}

Status HostValues::AcceptPull(size_t rank, Peer& peer) {
  std::string record;
  HEDDLE_RETURN_IF_ERROR(peer.asked->Next(&record).status());
  if (record.size() != kHeaderBytes) return DataLoss("a pull of the wrong length");
  HEDDLE_ASSIGN_OR_RETURN(const FrameHeader pull,
                          FrameHeader::Decode(reinterpret_cast<const uint8_t*>(record.data())));
  const SharedInbox* const inbox = host_.inbox(rank);
  if (pull.kind != FrameKind::kPull || peer.active.size() >= kMostPulls || inbox == nullptr)
    return DataLoss("a pull that cannot be");
  if (!peer.outgoing) peer.outgoing.emplace(inbox->values(host_.rank()));
  peer.active.emplace_back(pull.request, handler_->Published(pull.run, pull.register_id, pull.slot),
                           ring_bytes_ / kPiecesOfRing);
  return OkStatus();
}

bool HostValues::SendFrames(size_t rank, Peer& peer) {
  bool has_sent = false;
  for (int i = 0; i < kFramesInTurn && CanSendFrame(peer); ++i) {
    if (!SendFrame(rank, peer)) continue;
    has_sent = true;
    peer.outgoing->Publish();
    actor::Ring(host_.inbox(rank)->doorbell_of_client(), DoorbellReach::kMachine);
  }
  return has_sent;
}

// The next frame of the values that are pulled, in turn; false when there was none.
bool HostValues::SendFrame(size_t rank, Peer& peer) {
  engine::OutgoingValue value = std::move(peer.active.front());
  peer.active.pop_front();
  const std::optional<engine::OutgoingFrame> frame = value.Next();
  if (!frame) return false;
  const size_t size = frame->header.size;
  if (kHeadBytes + size + PaddingOf(size) > host_.inbox(rank)->values(host_.rank()).most_record_bytes()) {
    // A failure with a text beyond any measure.
    peer.outgoing->Append(
        {Text(ElsewhereOf(frame->header.request).Encode()), {kPadding.data(), kHeadBytes - kHeaderBytes}});
    return true;
  }
  const void* const payload = frame->payload != nullptr ? frame->payload : frame->owned.data();
  peer.outgoing->Append({Text(frame->header.Encode()),
                         {kPadding.data(), kHeadBytes - kHeaderBytes},
                         {static_cast<const char*>(payload), size},
                         {kPadding.data(), PaddingOf(size)}});
  counters_.bytes_sent->fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
  if (!frame->header.last) peer.active.push_back(std::move(value));
  return true;
}

}  // namespace heddle::cluster
