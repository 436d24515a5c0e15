// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/grpc_link.h"

#include <grpc/grpc.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "cluster/link/announced_message.h"
#include "cluster/link/host_messages.h"
#include "cluster/link/host_peers.h"
#include "cluster/link/host_values.h"
#include "cluster/link/link_probe.h"
#include "cluster/link/peer_connections.h"
#include "cluster/network/grpc_library.h"
#include "core/environment/log.h"
#include "engine/wire/small_values.h"
#include "engine/wire/value_wire.h"

namespace heddle::cluster {
namespace {

constexpr size_t kDecisionPartBytes = 256 << 10;
constexpr double kMostNsOnOneHost = 200'000;
constexpr auto kGoodbye = std::chrono::milliseconds(1000);

// What ranks say to each other; how it gets there is the business of the connections.
class LinkImpl : public GrpcLink, private ConnectionEvents {
 public:
  explicit LinkImpl(const GrpcLinkOptions& options)
      : hello_{options.job, options.attempt, options.rank, options.ranks, options.token},
        peers_(static_cast<size_t>(options.ranks)),
        connections_(hello_, options.repair_ms, this, &counters_) {}
  ~LinkImpl() override {
    if (host_ == nullptr) return;
    host_->messages.Stop();
    host_->values.Stop();
    host_->values.Fail(Unavailable("the link is closed"));
  }

  Status Bind(const GrpcLinkOptions& options) {
    if (options.shares_memory) {
      // Where the system does not let them share memory, peers talk as those of other machines do.
      Result<std::unique_ptr<HostPeers>> peers = HostPeers::Listen(hello_);
      if (peers.ok())
        host_ = std::make_unique<Host>(*std::move(peers), &counters_);
      else
        HEDDLE_LOG(kDebug, "no shared memory", {"why", peers.status().message()});
    }
    return connections_.Listen(options.listen);
  }
  const std::string& endpoint() const override { return connections_.endpoint(); }
  const std::string& certificate() const override { return connections_.certificate(); }

  void Serve(actor::LinkHandler* handler, std::function<void(const Status&)> on_failure) override {
    probe_.emplace(*this, *handler, static_cast<uint32_t>(hello_.rank), static_cast<uint32_t>(hello_.ranks),
                   [this] { CountAnew(); });
    handler_ = &*probe_;
    on_failure_ = std::move(on_failure);
    connections_.SetHandler(handler_);
    if (host_ == nullptr) return;
    const auto broken = [this](size_t rank, const Status& why) { OnNonsense(rank, why.message()); };
    host_->messages.Serve(
        {.deliver = [this](size_t rank, const std::string& record) { OnRecord(rank, record); },
         .broken = broken});
    host_->values.Serve(handler_, {.elsewhere =
                                       [this](size_t rank, uint32_t run, RegisterId register_id, uint8_t slot,
                                              HostValues::Done done) {
                                         connections_.Pull(rank, run, register_id, slot, std::move(done));
                                       },
                                   .broken = broken});
  }

  Status Connect(const std::vector<LinkPeer>& peers, int64_t timeout_ms) override {
    // Before a larger rank opens its stream, both know whether they share memory.
    if (host_ != nullptr) host_->peers->FindPeers();
    HEDDLE_RETURN_IF_ERROR(connections_.Open(peers));
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                      [&] { return HasStopped() || connections_.AllLinked(); });
    if (host_ != nullptr) host_->peers->Settle();
    if (HasStopped()) return Why();
    const size_t missing = connections_.FirstNotLinked();
    if (missing == peers.size()) return OkStatus();
    return Unavailable("{} did not link up within {} s", connections_.NameOf(missing),
                       static_cast<double>(timeout_ms) / 1e3);
  }

  void Send(uint32_t rank, std::span<const actor::Message> messages) override {
    if (messages.empty() || messages.front().type != actor::MessageType::kWake) {  // LinkProbe's
      messages_sent_.fetch_add(static_cast<int64_t>(messages.size()), std::memory_order_relaxed);
      writes_.fetch_add(1, std::memory_order_relaxed);
    }
    std::vector<AnnouncedMessage> announced;
    announced.reserve(messages.size());
    for (const actor::Message& message : messages)
      announced.push_back(
          {&message, message.type == actor::MessageType::kReady ? SmallValueOf(message) : std::string()});
    if (SharesMemoryWith(rank)) return host_->messages.Send(rank, announced);
    connections_.PushMessages(rank, announced);
  }

  void SendError(uint32_t rank, uint32_t run, NodeId node, const Status& status) override {
    ControlFrame frame;
    frame.mutable_error()->set_run(run);
    frame.mutable_error()->set_node(node);
    frame.mutable_error()->set_status(engine::EncodeStatus(status));
    connections_.Push(rank, std::move(frame));
  }

  void Pull(uint32_t rank, uint32_t run, RegisterId register_id, uint8_t slot,
            std::function<void(Result<Value>)> done) override {
    if (std::optional<Value> arrived = TakeArrived(rank, run, register_id, slot))
      return done(*std::move(arrived));
    if (host_ != nullptr && host_->values.Pull(rank, run, register_id, slot, &done)) return;
    connections_.Pull(rank, run, register_id, slot, std::move(done));
  }

  std::optional<Value> TakeArrived(uint32_t rank, uint32_t run, RegisterId register_id,
                                   uint8_t slot) override {
    const std::lock_guard lock(mutex_);
    return peers_[rank].small_values.Take(run, register_id, slot);
  }

  actor::MessageInbox* inbox() override {
    return host_ != nullptr && host_->peers->ReachesAny() ? &host_->messages : nullptr;
  }

  void Broadcast(const std::string& decision) override {
    for (size_t begin = 0; begin == 0 || begin < decision.size(); begin += kDecisionPartBytes) {
      ControlFrame frame;
      frame.mutable_decision()->set_text(decision.substr(begin, kDecisionPartBytes));
      frame.mutable_decision()->set_last(begin + kDecisionPartBytes >= decision.size());
      connections_.PushToAll(frame);
    }
  }

  Result<std::string> Receive() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !decisions_.empty() || !interrupted_.ok(); });
    if (!interrupted_.ok()) return interrupted_;
    std::string decision = std::move(decisions_.front());
    decisions_.pop_front();
    return decision;
  }

  void Interrupt(const Status& why) override {
    const std::lock_guard lock(mutex_);
    if (interrupted_.ok()) interrupted_ = why;
    changed_.notify_all();
  }

  void Fail(const Status& why) override {
    {
      const std::lock_guard lock(mutex_);
      if (failure_.ok()) failure_ = why;
    }
    ControlFrame frame;
    frame.set_failure(engine::EncodeStatus(why));
    connections_.PushToAll(frame);
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kGoodbye, [&] { return connections_.AllHaveHeard(); });
    }
    GiveUp(why);
  }

  Status Finish() override {
    ControlFrame frame;
    frame.set_end(true);
    connections_.PushToAll(frame);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return HasStopped() || connections_.AllHaveEnded(); });
    return Why();
  }

  LinkStatistics statistics() const override {
    return {.bytes_sent = counters_.bytes_sent.load(),
            .bytes_received = counters_.bytes_received.load(),
            .bytes_shared = counters_.bytes_shared.load(),
            .messages_sent = messages_sent_.load(),
            .writes = writes_.load(),
            .wakes = host_ == nullptr ? 0 : host_->messages.wakes(),
            .repairs = counters_.repairs.load()};
  }
  ops::LinkRates MeasureLinks() override {
    const ops::LinkRates rates = probe_->Measure();
    bool is_one_host = true;
    for (size_t rank = 0; rank < peers_.size(); ++rank)
      is_one_host &= rank == static_cast<size_t>(hello_.rank) || SharesMemoryWith(rank);
    // On one machine it takes that long only while others compute.
    return is_one_host && rates.message_ns > kMostNsOnOneHost ? ops::LinkRates() : rates;
  }
  bool SharesMemoryWith(size_t rank) const override {
    return host_ != nullptr && host_->peers->Reaches(rank);
  }

 private:
  // What goes through memory that this executor shares with others of its machine.
  struct Host {
    Host(std::unique_ptr<HostPeers> with, PeerConnections::Counters* counters)
        : peers(std::move(with)),
          messages(*peers),
          values(*peers, {.bytes_sent = &counters->bytes_sent,
                          .bytes_received = &counters->bytes_received,
                          .bytes_shared = &counters->bytes_shared}) {}
    std::unique_ptr<HostPeers> peers;
    HostMessages messages;
    HostValues values;
  };
  struct Peer {
    engine::SmallValues small_values;
  };

  // Under mutex_.
  bool HasStopped() const { return !failure_.ok() || !interrupted_.ok(); }
  Status Why() const { return failure_.ok() ? interrupted_ : failure_; }

  // What was sent before was no part of the job.
  void CountAnew() {
    for (std::atomic<int64_t>* const counter : {&messages_sent_, &writes_, &counters_.bytes_sent,
                                                &counters_.bytes_received, &counters_.bytes_shared})
      counter->store(0);
  }

  void OnFrame(size_t rank, const ControlFrame& frame) override {
    switch (frame.body_case()) {
      case ControlFrame::kBatch: return OnBatch(rank, frame.batch());
      case ControlFrame::kError:
        return handler_->OnError(static_cast<uint32_t>(rank), frame.error().run(), frame.error().node(),
                                 StatusOf(frame.error().status()));
      case ControlFrame::kFailure: return OnLoss(StatusOf(frame.failure()));
      case ControlFrame::kDecision: {
        if (rank != 0) return OnNonsense(rank, "worker 0 alone decides");
        const std::lock_guard lock(mutex_);
        partial_decision_ += frame.decision().text();
        if (!frame.decision().last()) return;
        decisions_.push_back(std::exchange(partial_decision_, std::string()));
        return changed_.notify_all();
      }
      case ControlFrame::kEnd:
      case ControlFrame::kLinked:
      case ControlFrame::BODY_NOT_SET: return;  // the connections' business
    }
  }

  // What a peer says cannot be right: nothing that it says counts any more.
  void OnNonsense(size_t rank, std::string_view why) {
    OnLoss(Unavailable("{} was lost", connections_.NameOf(rank)).WithNote(std::string(why)));
  }

  static Status StatusOf(const std::string& bytes) {
    Status status;
    const Status decoded = engine::DecodeStatus(bytes, &status);
    if (!decoded.ok()) return decoded;
    return status.ok() ? Internal("a peer failed and did not say why") : status;
  }

  void OnBatch(size_t rank, const MessageBatch& batch) {
    for (const SmallValue& small : batch.values())
      OnSmallValue(rank, small.run(), small.register_id(), small.slot(), small.frames());
    const std::string& bytes = batch.messages();
    if (bytes.size() % sizeof(actor::Message) != 0) return OnNonsense(rank, "a message is cut off");
    for (size_t begin = 0; begin < bytes.size(); begin += sizeof(actor::Message)) {
      actor::Message message;
      std::memcpy(static_cast<void*>(&message), bytes.data() + begin, sizeof(message));
      if (message.source.rank() == rank) handler_->OnMessage(message);  // nobody speaks for another
    }
  }

  // A message of a peer on this machine, and the value that it announces where that is small.
  void OnRecord(size_t rank, const std::string& record) {
    actor::Message message;
    if (record.size() < sizeof(message)) return OnNonsense(rank, "a message is cut off");
    std::memcpy(static_cast<void*>(&message), record.data(), sizeof(message));
    if (message.source.rank() != rank) return;
    if (const std::string_view frames = std::string_view(record).substr(sizeof(message)); !frames.empty()) {
      OnSmallValue(rank, message.run, message.register_id, message.slot, frames);
      counters_.bytes_shared.fetch_add(static_cast<int64_t>(frames.size()), std::memory_order_relaxed);
    }
    handler_->OnMessage(message);
  }

  void OnSmallValue(size_t rank, uint32_t run, RegisterId register_id, uint32_t slot,
                    std::string_view frames) {
    counters_.bytes_received.fetch_add(static_cast<int64_t>(frames.size()), std::memory_order_relaxed);
    Result<Value> value = engine::DecodeValue(frames);
    if (!value.ok()) return;  // then it is pulled, and says why it cannot be
    const std::lock_guard lock(mutex_);
    peers_[rank].small_values.Put(run, register_id, slot, *std::move(value));
  }

  // The job cannot go on. The first cause counts.
  void OnLoss(const Status& why) override {
    {
      const std::lock_guard lock(mutex_);
      if (!failure_.ok()) return;
      failure_ = why;
      changed_.notify_all();
    }
    if (on_failure_) on_failure_(why);
    GiveUp(why);  // Last: whoever fails by a pull knows the cause then.
  }

  void GiveUp(const Status& why) {
    connections_.GiveUp(why);
    if (host_ != nullptr) host_->values.Fail(why);
  }

  void OnProgress() override {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }

  // The value that `message` announces, when it is small enough to travel with it; else empty.
  std::string SmallValueOf(const actor::Message& message) {
    const Result<Value> value = handler_->Published(message.run, message.register_id, message.slot);
    if (!value.ok()) return "";  // a control register
    std::string frames = engine::SmallValues::Encode(*value);
    counters_.bytes_sent.fetch_add(static_cast<int64_t>(frames.size()), std::memory_order_relaxed);
    return frames;
  }

  const Hello hello_;
  std::optional<LinkProbe> probe_;         // Set before peers can know of this rank,
  actor::LinkHandler* handler_ = nullptr;  // as this, which is the same.
  std::function<void(const Status&)> on_failure_;
  std::atomic<int64_t> messages_sent_{0};
  std::atomic<int64_t> writes_{0};
  PeerConnections::Counters counters_;
  std::mutex mutex_;  // taken before that of the connections
  std::condition_variable changed_;
  std::vector<Peer> peers_;  // by rank
  std::string partial_decision_;
  std::deque<std::string> decisions_;
  Status interrupted_;
  Status failure_;
  std::unique_ptr<Host> host_;   // nullptr: it shares no memory. Its threads have ended before
  PeerConnections connections_;  // this goes, which uses the rest until it is gone.
};

}  // namespace

Result<std::unique_ptr<GrpcLink>> GrpcLink::Listen(const GrpcLinkOptions& options) {
  KeepGrpcLibrary();
  auto link = std::make_unique<LinkImpl>(options);
  HEDDLE_RETURN_IF_ERROR(link->Bind(options));
  return std::unique_ptr<GrpcLink>(std::move(link));
}

}  // namespace heddle::cluster
