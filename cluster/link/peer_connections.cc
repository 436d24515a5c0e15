// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/peer_connections.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/environment/clock.h"
#include "core/environment/log.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kGoodbyeMs = 1'000;
constexpr int64_t kNsPerMs = 1'000'000;

// Why a stream that ended so is not opened again; Ok if it is.
Status Refusal(const std::string& name, const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::PERMISSION_DENIED:
      return PermissionDenied("{} refused the link: {}", name, status.error_message());
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:  // a message past the limits would be the same again
    case grpc::StatusCode::UNIMPLEMENTED:
      return Unavailable("{} was lost", name).WithNote(status.error_message());
    default: return OkStatus();
  }
}

}  // namespace

// One control stream with one peer, as the stream sees it.
class PeerConnections::ControlEnd : public StreamEvents<ControlFrame> {
 public:
  ControlEnd(PeerConnections& connections, size_t rank, uint64_t connection)
      : connections_(connections), rank_(rank), connection_(connection) {}
  bool NextFrame(ControlFrame* frame) override { return connections_.NextControl(rank_, connection_, frame); }
  void OnFrame(ControlFrame& frame) override { connections_.OnControl(rank_, connection_, frame); }
  void OnClosed(const grpc::Status& status) override {
    Peer& peer = connections_.peers_[rank_];
    connections_.OnStreamClosed(rank_, status, [&] {
      if (connection_ == peer.connection)
        connections_.Break(peer, peer.control_repair, connections_.Calls(rank_), status);
    });
  }

 private:
  PeerConnections& connections_;
  const size_t rank_;
  const uint64_t connection_;
};

PeerConnections::PeerConnections(const Hello& hello, int64_t repair_ms, ConnectionEvents* events,
                                 Counters* counters)
    : hello_(hello),
      repair_ns_(repair_ms * kNsPerMs),
      events_(events),
      counters_(counters),
      peers_(static_cast<size_t>(hello.ranks)) {
  for (size_t rank = 0; rank < peers_.size(); ++rank)
    peers_[rank].address.name = fmt::format("worker {}", rank);
}

// First nobody opens streams any more; then every stream ends, and gRPC with it; then the rest may go.
PeerConnections::~PeerConnections() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    watch_.notify_all();
  }
  if (watcher_.joinable()) watcher_.join();
  std::vector<std::shared_ptr<StreamPort>> ports;
  std::vector<std::shared_ptr<StreamPort>> broken;  // nobody is there to end them
  {
    const std::lock_guard lock(mutex_);
    for (const Peer& peer : peers_) {
      if (peer.control != nullptr) (peer.control_repair.IsBroken() ? broken : ports).push_back(peer.control);
      if (peer.data != nullptr) (peer.data_repair.IsBroken() ? broken : ports).push_back(peer.data);
    }
  }
  for (const auto& port : ports) port->Finish();
  for (const auto& port : broken) port->Abort();
  GiveUp(Unavailable("the link is closed"));
  if (server_ != nullptr) server_->Shutdown(kGoodbyeMs);
  std::unique_lock lock(mutex_);
  const auto all_closed = [&] { return open_streams_ == 0; };
  if (closed_.wait_for(lock, std::chrono::milliseconds(kGoodbyeMs), all_closed)) return;
  lock.unlock();
  for (const auto& port : ports) port->Abort();
  lock.lock();
  closed_.wait(lock, all_closed);
}

Status PeerConnections::Listen(const std::string& address) {
  HEDDLE_ASSIGN_OR_RETURN(server_, LinkServer::Start(address, hello_, this));
  return OkStatus();
}

void PeerConnections::SetHandler(actor::LinkHandler* handler) {
  const std::lock_guard lock(mutex_);
  handler_ = handler;
}

Status PeerConnections::Open(const std::vector<LinkPeer>& peers) {
  if (peers.size() != peers_.size())
    return Internal("a rank table of {} for a job of {}", peers.size(), peers_.size());
  {
    const std::lock_guard lock(mutex_);
    for (size_t rank = 0; rank < peers.size(); ++rank) {
      const std::string name = std::move(peers_[rank].address.name);
      peers_[rank].address = peers[rank];
      if (peers[rank].name.empty()) peers_[rank].address.name = name;
      peers_[rank].pulls = MakePulls(rank);
    }
  }
  watcher_ = std::thread([this] { Watch(); });
  for (size_t rank = 0; rank < peers.size(); ++rank) {
    if (IsOwn(rank)) continue;
    if (Calls(rank)) HEDDLE_RETURN_IF_ERROR(DialControl(rank));
    HEDDLE_RETURN_IF_ERROR(DialData(rank));
  }
  return OkStatus();
}

std::string PeerConnections::NameOf(size_t rank) const {
  const std::lock_guard lock(mutex_);
  const LinkPeer& address = peers_[rank].address;
  return address.endpoint.empty() ? address.name : fmt::format("{} at {}", address.name, address.endpoint);
}

// --- sending ---

void PeerConnections::Push(size_t rank, ControlFrame frame) {
  std::shared_ptr<StreamPort> port;
  {
    const std::lock_guard lock(mutex_);
    peers_[rank].frames.Push(std::move(frame));
    port = peers_[rank].control;
  }
  if (port != nullptr) port->Wake();
}

void PeerConnections::PushToAll(const ControlFrame& frame) {
  for (size_t rank = 0; rank < peers_.size(); ++rank)
    if (!IsOwn(rank)) Push(rank, frame);
}

void PeerConnections::PushMessages(size_t rank, std::span<const AnnouncedMessage> messages) {
  std::shared_ptr<StreamPort> port;
  {
    const std::lock_guard lock(mutex_);
    for (const AnnouncedMessage& each : messages) {
      MessageBatch& batch = peers_[rank].frames.OpenBatch();
      batch.mutable_messages()->append(each.bytes());
      if (each.small_value.empty()) continue;
      SmallValue& value = *batch.add_values();
      value.set_run(each.message->run);
      value.set_register_id(each.message->register_id);
      value.set_slot(each.message->slot);
      value.set_frames(each.small_value);
    }
    port = peers_[rank].control;
  }
  if (port != nullptr) port->Wake();
}

void PeerConnections::Pull(size_t rank, uint32_t run, RegisterId register_id, uint8_t slot,
                           PullClient::Done done) {
  std::shared_ptr<PullClient> pulls;
  {
    const std::lock_guard lock(mutex_);
    pulls = peers_[rank].pulls;
  }
  if (pulls == nullptr) return done(Unavailable("there is no link to worker {}", rank));
  pulls->Pull(run, register_id, slot, std::move(done));
}

// --- how it stands ---

template <typename Predicate>
bool PeerConnections::AllPeers(const Predicate& predicate) const {
  const std::lock_guard lock(mutex_);
  for (size_t rank = 0; rank < peers_.size(); ++rank)
    if (!IsOwn(rank) && !predicate(peers_[rank])) return false;
  return true;
}

bool PeerConnections::AllLinked() const { return FirstNotLinked() == peers_.size(); }

size_t PeerConnections::FirstNotLinked() const {
  const std::lock_guard lock(mutex_);
  const auto is_linked = [&](size_t rank) {
    return IsOwn(rank) || peers_[rank].ended || peers_[rank].frames.established();
  };
  size_t rank = 0;
  while (rank < peers_.size() && is_linked(rank)) ++rank;
  return rank;
}

bool PeerConnections::AllHaveHeard() const {
  return AllPeers([](const Peer& peer) {
    return peer.ended || !peer.frames.established() || peer.control_repair.IsBroken() ||
           peer.frames.AllAcknowledged();
  });
}

bool PeerConnections::AllHaveEnded() const {
  return AllPeers(
      [](const Peer& peer) { return peer.ended && (peer.gone || peer.frames.AllAcknowledged()); });
}

void PeerConnections::GiveUp(const Status& why) {
  std::vector<std::shared_ptr<PullClient>> pulls;
  {
    const std::lock_guard lock(mutex_);
    gave_up_ = true;
    for (const Peer& peer : peers_)
      if (peer.pulls != nullptr) pulls.push_back(peer.pulls);
  }
  for (const auto& pull : pulls) pull->Fail(why);
}

// --- streams begin ---

ControlReactor* PeerConnections::AcceptControl(grpc::CallbackServerContext* context, int rank) {
  const auto index = static_cast<size_t>(rank);
  std::shared_ptr<ServerStream<ControlFrame>> stream;
  std::shared_ptr<StreamPort> before;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return RefuseControl({grpc::StatusCode::UNAVAILABLE, "this executor ends"});
    before = peers_[index].control;
    stream = std::make_shared<ServerStream<ControlFrame>>(
        context, std::make_shared<ControlEnd>(*this, index, peers_[index].connection + 1));
    Attach(index, stream);
  }
  if (before != nullptr) before->Abort();  // the caller knows that it is broken
  stream->Start(stream);
  return stream.get();
}

DataReactor* PeerConnections::AcceptData(grpc::CallbackServerContext* context, int) {
  actor::LinkHandler* handler = nullptr;
  {
    const std::lock_guard lock(mutex_);
    handler = handler_;
  }
  if (handler == nullptr) return RefuseData({grpc::StatusCode::UNAVAILABLE, "this executor is not ready"});
  auto server = std::make_shared<PullServer>(*handler, counters_->bytes_sent);
  auto stream = std::make_shared<ServerStream<grpc::ByteBuffer>>(context, server);
  server->SetPort(stream);
  stream->StartSendInitialMetadata();  // the caller sees that it has got through
  stream->Start(stream);
  return stream.get();
}

// Under mutex_: the next control stream of a peer.
void PeerConnections::Attach(size_t rank, std::shared_ptr<StreamPort> port) {
  ++open_streams_;
  ++peers_[rank].connection;
  peers_[rank].control = std::move(port);
  peers_[rank].frames.Begin();
}

Status PeerConnections::DialControl(size_t rank) {
  LinkPeer address;
  uint64_t connection = 0;
  {
    const std::lock_guard lock(mutex_);
    address = peers_[rank].address;
    connection = peers_[rank].connection + 1;  // nobody else attaches: the larger rank calls
  }
  auto stream =
      std::make_shared<ClientStream<ControlFrame>>(std::make_shared<ControlEnd>(*this, rank, connection));
  AddHello(hello_, &stream->context());
  HEDDLE_RETURN_IF_ERROR(CallControl(address.endpoint, address.certificate, stream.get()));
  {
    const std::lock_guard lock(mutex_);
    Attach(rank, stream);
  }
  stream->Start(stream);
  return OkStatus();
}

Status PeerConnections::DialData(size_t rank) {
  LinkPeer address;
  std::shared_ptr<PullClient> pulls;
  {
    const std::lock_guard lock(mutex_);
    address = peers_[rank].address;
    pulls = peers_[rank].pulls;
  }
  auto stream = std::make_shared<ClientStream<grpc::ByteBuffer>>(pulls);
  AddHello(hello_, &stream->context());
  HEDDLE_RETURN_IF_ERROR(CallData(address.endpoint, address.certificate, stream.get()));
  {
    const std::lock_guard lock(mutex_);
    ++open_streams_;
    peers_[rank].data = stream;
  }
  pulls->Use(stream);
  stream->Start(stream);
  return OkStatus();
}

std::shared_ptr<PullClient> PeerConnections::MakePulls(size_t rank) {
  Peer& peer = peers_[rank];
  PullClient::Events events;
  events.opened = [this, &peer] {
    const std::lock_guard lock(mutex_);
    if (peer.data_repair.Mend()) counters_->repairs.fetch_add(1, std::memory_order_relaxed);
  };
  events.closed = [this, &peer, rank](const grpc::Status& status) {
    OnStreamClosed(rank, status, [&] { Break(peer, peer.data_repair, /*calls=*/true, status); });
  };
  return std::make_shared<PullClient>(counters_->bytes_received, std::move(events));
}

// --- streams at work ---

bool PeerConnections::NextControl(size_t rank, uint64_t connection, ControlFrame* frame) {
  const std::lock_guard lock(mutex_);
  return connection == peers_[rank].connection && peers_[rank].frames.Next(frame);
}

void PeerConnections::OnControl(size_t rank, uint64_t connection, const ControlFrame& frame) {
  Peer& peer = peers_[rank];
  const std::lock_guard delivery(peer.delivery);
  std::shared_ptr<StreamPort> port;
  Result<bool> accepted = false;
  std::string name;
  bool progress = false;
  {
    const std::lock_guard lock(mutex_);
    if (connection != peer.connection) return;
    const bool waited = !peer.frames.AllAcknowledged();
    accepted = peer.frames.Accept(frame);
    if (!accepted.ok()) name = peer.address.name;
    if (frame.has_linked() && peer.control_repair.Mend())
      counters_->repairs.fetch_add(1, std::memory_order_relaxed);
    if (frame.has_end() || frame.has_failure()) peer.ended = true;
    progress = frame.has_linked() || peer.ended || (waited && peer.frames.AllAcknowledged());
    if (peer.frames.HasNext()) port = peer.control;
  }
  if (!accepted.ok())
    return events_->OnLoss(Unavailable("{} was lost", name).WithNote(accepted.status().message()));
  if (*accepted) events_->OnFrame(rank, frame);
  if (progress) events_->OnProgress();
  if (port != nullptr) port->Wake();
}

// --- streams end ---

// Under mutex_. A peer that has ended goes on purpose, but it may not know yet that we have, too.
void PeerConnections::Break(Peer& peer, LinkRepair& repair, bool calls, const grpc::Status& status) {
  if (closing_ || gave_up_ || peer.gone) return;
  if (peer.ended && (&repair == &peer.data_repair || peer.frames.AllAcknowledged())) return;
  repair.Break(SystemClock().MonotonicNs(), repair_ns_, calls, status.error_message());
  watch_.notify_all();
}

// `note_break` is called under mutex_.
template <typename NoteBreak>
void PeerConnections::OnStreamClosed(size_t rank, const grpc::Status& status, const NoteBreak& note_break) {
  Status refusal;
  {
    const std::lock_guard lock(mutex_);
    if (!closing_ && !peers_[rank].ended) refusal = Refusal(peers_[rank].address.name, status);
    if (refusal.ok()) note_break();
  }
  if (!refusal.ok()) events_->OnLoss(refusal);
  const std::lock_guard lock(mutex_);
  --open_streams_;
  closed_.notify_all();  // under the lock: the destructor may follow at once
}

// Opens broken streams again, and gives up those that stay broken.
void PeerConnections::Watch() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    Status loss;
    std::vector<size_t> control_calls;
    std::vector<size_t> data_calls;
    int64_t wait_ns = 0;
    const bool has_work = FindRepairs(&control_calls, &data_calls, &loss, &wait_ns);
    if (!has_work) {
      if (wait_ns == LinkRepair::kNever)
        watch_.wait(lock);
      else
        watch_.wait_for(lock, std::chrono::nanoseconds(wait_ns));
      continue;
    }
    lock.unlock();
    if (!loss.ok()) events_->OnLoss(loss);
    for (const size_t rank : control_calls) (void)DialControl(rank);  // as it succeeded in Open
    for (const size_t rank : data_calls) (void)DialData(rank);
    events_->OnProgress();
    lock.lock();
  }
}

// Under mutex_. False: nothing to do for `wait_ns`.
bool PeerConnections::FindRepairs(std::vector<size_t>* control_calls, std::vector<size_t>* data_calls,
                                  Status* loss, int64_t* wait_ns) {
  *wait_ns = LinkRepair::kNever;
  if (gave_up_) return false;
  const int64_t now_ns = SystemClock().MonotonicNs();
  int64_t next_ns = LinkRepair::kNever;
  bool found = false;
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    Peer& peer = peers_[rank];
    for (LinkRepair* repair : {&peer.control_repair, &peer.data_repair}) {
      if (repair->IsHopeless(now_ns)) {
        found = true;
        if (peer.ended) {
          peer.gone = true;
        } else if (loss->ok()) {
          *loss = Unavailable("{} was lost", peer.address.name);
          if (!repair->cause().empty()) *loss = loss->WithNote(repair->cause());
        }
        repair->GiveUp();
      } else if (repair->TakeCall(now_ns)) {
        found = true;
        (repair == &peer.control_repair ? control_calls : data_calls)->push_back(rank);
      }
      next_ns = std::min(next_ns, repair->NextNs());
    }
  }
  *wait_ns = next_ns == LinkRepair::kNever ? next_ns : next_ns - now_ns;
  return found;
}

}  // namespace heddle::cluster
