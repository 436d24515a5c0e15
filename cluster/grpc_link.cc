// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc_link.h"

#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <tuple>

#include "cluster/grpc_hello.h"
#include "cluster/grpc_pull.h"
#include "cluster/grpc_stream.h"
#include "proto/executor.grpc.pb.h"

namespace heddle::cluster {
namespace {

constexpr int kMostControlBytes = 4 << 20;
constexpr int kMostDataBytes = static_cast<int>(kChunkBytes) + 4096;
constexpr size_t kDecisionPartBytes = 256 << 10;
constexpr size_t kMessageBatchBytes = 64 << 10;
constexpr int64_t kSmallValueBytes = 4 << 10;
constexpr auto kGoodbye = std::chrono::milliseconds(1000);

using DataStub = grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>;

bool IsLoopback(const std::string& address) {
  if (address.starts_with("unix:") || address.starts_with("[::1]:")) return true;
  return address.starts_with("127.") || address.starts_with("localhost:");
}

// Ends a call at once.
template <typename Frame>
class RefusedStream : public grpc::ServerBidiReactor<Frame, Frame> {
 public:
  explicit RefusedStream(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

class LinkImpl;

// The control stream with one peer, as the stream sees it.
class ControlEnd : public StreamEvents<ControlFrame> {
 public:
  ControlEnd(LinkImpl& link, size_t rank) : link_(link), rank_(rank) {}
  bool NextFrame(ControlFrame* frame) override;
  void OnFrame(ControlFrame& frame) override;
  void OnClosed(const grpc::Status& status) override;

 private:
  LinkImpl& link_;
  size_t rank_;
};

class Service : public ExecutorLink::WithCallbackMethod_Control<
                    ExecutorLink::WithRawCallbackMethod_Data<ExecutorLink::Service>> {
 public:
  explicit Service(LinkImpl& link) : link_(link) {}
  grpc::ServerBidiReactor<ControlFrame, ControlFrame>* Control(grpc::CallbackServerContext* context) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Data(
      grpc::CallbackServerContext* context) override;

 private:
  LinkImpl& link_;
};

// Where a small value was published: run, register, slot.
using SlotKey = std::tuple<uint32_t, RegisterId, uint32_t>;

struct Peer {
  std::string name;
  std::shared_ptr<StreamPort> control;  // nullptr until the stream stands
  std::shared_ptr<StreamPort> data;
  std::shared_ptr<PullClient> pulls;
  std::deque<ControlFrame> outgoing;
  std::string partial_decision;
  std::map<SlotKey, Value> small_values;  // that came with their READY and have not been pulled
  bool linked = false;
  bool ended = false;
};

class LinkImpl : public GrpcLink {
 public:
  explicit LinkImpl(const GrpcLinkOptions& options)
      : hello_{options.job, options.attempt, options.rank, options.ranks, options.token},
        service_(*this),
        peers_(static_cast<size_t>(options.ranks)) {
    for (size_t rank = 0; rank < peers_.size(); ++rank) peers_[rank].name = fmt::format("worker {}", rank);
  }

  ~LinkImpl() override {
    std::vector<std::shared_ptr<StreamPort>> ports;
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      for (const Peer& peer : peers_) {
        if (peer.control != nullptr) ports.push_back(peer.control);
        if (peer.data != nullptr) ports.push_back(peer.data);
      }
    }
    for (const auto& port : ports) port->Finish();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + kGoodbye);
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kGoodbye, [&] { return open_streams_ == 0; })) return;
    lock.unlock();
    for (const auto& port : ports) port->Abort();
    lock.lock();
    changed_.wait(lock, [&] { return open_streams_ == 0; });
  }

  Status Bind(const GrpcLinkOptions& options) {
    if (!options.allow_remote && !IsLoopback(options.listen))
      return PermissionDenied("an executor does not bind {} unless other hosts may reach it", options.listen);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(kMostControlBytes);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    server_ = builder.BuildAndStart();
    const bool is_unix = options.listen.starts_with("unix:");
    if (server_ == nullptr || (port == 0 && !is_unix)) return Unavailable("cannot bind {}", options.listen);
    endpoint_ = is_unix ? options.listen
                        : fmt::format("{}:{}", options.listen.substr(0, options.listen.rfind(':')), port);
    return OkStatus();
  }

  const std::string& endpoint() const override { return endpoint_; }

  void Serve(actor::LinkHandler* handler, std::function<void(const Status&)> on_failure) override {
    handler_ = handler;
    on_failure_ = std::move(on_failure);
  }

  Status Connect(const std::vector<LinkPeer>& peers, int64_t timeout_ms) override {
    if (peers.size() != peers_.size())
      return Internal("a rank table of {} for a job of {}", peers.size(), peers_.size());
    {
      const std::lock_guard lock(mutex_);
      for (size_t rank = 0; rank < peers.size(); ++rank)
        if (!peers[rank].name.empty()) peers_[rank].name = peers[rank].name;
    }
    for (size_t rank = 0; rank < peers.size(); ++rank) {
      if (static_cast<int>(rank) == hello_.rank) continue;
      if (static_cast<int>(rank) < hello_.rank) DialControl(rank, peers[rank].endpoint);
      DialData(rank, peers[rank].endpoint);
    }
    std::unique_lock lock(mutex_);
    const bool all = changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                                       [&] { return !failure_.ok() || AllLinked(); });
    if (!failure_.ok()) return failure_;
    if (all) return OkStatus();
    for (size_t rank = 0; rank < peers_.size(); ++rank)
      if (static_cast<int>(rank) != hello_.rank && !peers_[rank].linked)
        return Unavailable("{} did not link up within {} s", peers_[rank].name, timeout_ms / 1000);
    return OkStatus();
  }

  void Send(uint32_t rank, const actor::Message& message) override {
    messages_sent_.fetch_add(1, std::memory_order_relaxed);
    const std::string small_value =
        message.type == actor::MessageType::kReady ? SmallValueOf(message) : std::string();
    std::shared_ptr<StreamPort> port;
    {
      const std::lock_guard lock(mutex_);
      Peer& peer = peers_[rank];
      if (peer.outgoing.empty() || !peer.outgoing.back().has_batch() ||
          peer.outgoing.back().batch().ByteSizeLong() >= kMessageBatchBytes)
        peer.outgoing.emplace_back();
      MessageBatch& batch = *peer.outgoing.back().mutable_batch();
      batch.mutable_messages()->append(reinterpret_cast<const char*>(&message), sizeof(message));
      if (!small_value.empty()) {
        SmallValue& value = *batch.add_values();
        value.set_run(message.run);
        value.set_register_id(message.register_id);
        value.set_slot(message.slot);
        value.set_frames(small_value);
      }
      port = peer.control;
    }
    if (port != nullptr) port->Wake();
  }

  void SendError(uint32_t rank, uint32_t run, NodeId node, const Status& status) override {
    ControlFrame frame;
    frame.mutable_error()->set_run(run);
    frame.mutable_error()->set_node(node);
    frame.mutable_error()->set_status(EncodeStatus(status));
    Queue(rank, std::move(frame));
  }

  void Pull(uint32_t rank, uint32_t run, RegisterId register_id, uint8_t slot,
            std::function<void(Result<Value>)> done) override {
    std::shared_ptr<PullClient> pulls;
    std::map<SlotKey, Value>::node_type small_value;
    {
      const std::lock_guard lock(mutex_);
      pulls = peers_[rank].pulls;
      small_value = peers_[rank].small_values.extract({run, register_id, slot});
    }
    if (!small_value.empty()) return done(std::move(small_value.mapped()));
    if (pulls == nullptr) return done(Unavailable("there is no link to worker {}", rank));
    pulls->Pull(run, register_id, slot, std::move(done));
  }

  void Broadcast(const std::string& decision) override {
    for (size_t begin = 0; begin == 0 || begin < decision.size(); begin += kDecisionPartBytes) {
      ControlFrame frame;
      frame.mutable_decision()->set_text(decision.substr(begin, kDecisionPartBytes));
      frame.mutable_decision()->set_last(begin + kDecisionPartBytes >= decision.size());
      QueueForAll(frame);
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
    ControlFrame frame;
    frame.set_failure(EncodeStatus(why));
    QueueForAll(frame);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kGoodbye, [&] {
      for (const Peer& peer : peers_)
        if (peer.control != nullptr && !peer.ended && !peer.outgoing.empty()) return false;
      return true;
    });
  }

  Status Finish() override {
    ControlFrame frame;
    frame.set_end(true);
    QueueForAll(frame);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      if (!failure_.ok() || !interrupted_.ok()) return true;
      for (size_t rank = 0; rank < peers_.size(); ++rank)
        if (static_cast<int>(rank) != hello_.rank && !peers_[rank].ended) return false;
      return true;
    });
    return failure_.ok() ? interrupted_ : failure_;
  }

  LinkStatistics statistics() const override {
    return {bytes_sent_.load(), bytes_received_.load(), messages_sent_.load()};
  }

  // --- what streams report ---

  bool NextControl(size_t rank, ControlFrame* frame) {
    const std::lock_guard lock(mutex_);
    std::deque<ControlFrame>& outgoing = peers_[rank].outgoing;
    if (outgoing.empty()) return false;
    frame->Swap(&outgoing.front());
    outgoing.pop_front();
    if (outgoing.empty()) changed_.notify_all();
    return true;
  }

  void OnControl(size_t rank, ControlFrame& frame) {
    switch (frame.body_case()) {
      case ControlFrame::kBatch: return OnBatch(rank, frame.batch());
      case ControlFrame::kError: {
        Status status;
        const Status decoded = DecodeStatus(frame.error().status(), &status);
        return handler_->OnError(static_cast<uint32_t>(rank), frame.error().run(), frame.error().node(),
                                 decoded.ok() ? status : decoded);
      }
      case ControlFrame::kFailure: {
        Status status;
        const Status decoded = DecodeStatus(frame.failure(), &status);
        {
          const std::lock_guard lock(mutex_);
          peers_[rank].ended = true;  // it may go away now
        }
        return Lose(decoded.ok() ? status : decoded);
      }
      case ControlFrame::kDecision: {
        const std::lock_guard lock(mutex_);
        std::string& partial = peers_[rank].partial_decision;
        partial += frame.decision().text();
        if (frame.decision().last()) decisions_.push_back(std::exchange(partial, std::string()));
        break;
      }
      case ControlFrame::kLinked: {
        const std::lock_guard lock(mutex_);
        peers_[rank].linked = true;
        break;
      }
      case ControlFrame::kEnd: {
        const std::lock_guard lock(mutex_);
        peers_[rank].ended = true;
        break;
      }
      case ControlFrame::BODY_NOT_SET: return;
    }
    changed_.notify_all();
  }

  void OnStreamClosed(size_t rank, const grpc::Status& status) {
    Status loss;
    {
      const std::lock_guard lock(mutex_);
      const Peer& peer = peers_[rank];
      if (!closing_ && !peer.ended) {
        if (status.error_code() == grpc::StatusCode::PERMISSION_DENIED) {
          loss = PermissionDenied("{} refused the link: {}", peer.name, status.error_message());
        } else {
          loss = Unavailable("{} was lost", peer.name);
          if (!status.error_message().empty()) loss = loss.WithNote(status.error_message());
        }
      }
    }
    if (!loss.ok()) Lose(loss);
    const std::lock_guard lock(mutex_);
    --open_streams_;
    changed_.notify_all();  // under the lock: the destructor may follow at once
  }

  grpc::ServerBidiReactor<ControlFrame, ControlFrame>* AcceptControl(grpc::CallbackServerContext* context) {
    int rank = 0;
    grpc::Status status = CheckHello(hello_, *context, &rank);
    if (status.ok() && rank < hello_.rank)
      status = {grpc::StatusCode::FAILED_PRECONDITION, "the larger rank calls"};
    if (!status.ok()) return new RefusedStream<ControlFrame>(status);
    const auto index = static_cast<size_t>(rank);
    auto stream =
        std::make_shared<ServerStream<ControlFrame>>(context, std::make_shared<ControlEnd>(*this, index));
    {
      const std::lock_guard lock(mutex_);
      if (closing_ || peers_[index].control != nullptr)
        return new RefusedStream<ControlFrame>(
            {grpc::StatusCode::FAILED_PRECONDITION, "that rank is linked already"});
      Attach(index, stream);
    }
    stream->Start(stream);
    return stream.get();
  }

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* AcceptData(
      grpc::CallbackServerContext* context) {
    int rank = 0;
    const grpc::Status status = CheckHello(hello_, *context, &rank);
    if (!status.ok()) return new RefusedStream<grpc::ByteBuffer>(status);
    if (handler_ == nullptr)
      return new RefusedStream<grpc::ByteBuffer>(
          {grpc::StatusCode::FAILED_PRECONDITION, "this executor is not ready"});
    auto server = std::make_shared<PullServer>(*handler_, bytes_sent_);
    auto stream = std::make_shared<ServerStream<grpc::ByteBuffer>>(context, server);
    server->SetPort(stream);
    stream->Start(stream);
    return stream.get();
  }

 private:
  // Under mutex_.
  void Attach(size_t rank, std::shared_ptr<StreamPort> port) {
    ++open_streams_;
    peers_[rank].control = std::move(port);
    ControlFrame linked;
    linked.set_linked(true);
    peers_[rank].outgoing.push_front(std::move(linked));
  }

  std::shared_ptr<grpc::Channel> OpenChannel(const std::string& endpoint, int most_bytes) const {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(most_bytes);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    return grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments);
  }

  void DialControl(size_t rank, const std::string& endpoint) {
    auto stream = std::make_shared<ClientStream<ControlFrame>>(std::make_shared<ControlEnd>(*this, rank));
    AddHello(hello_, &stream->context());
    const auto stub = ExecutorLink::NewStub(OpenChannel(endpoint, kMostControlBytes));
    stub->async()->Control(&stream->context(), stream.get());
    {
      const std::lock_guard lock(mutex_);
      Attach(rank, stream);
    }
    stream->Start(stream);
  }

  void DialData(size_t rank, const std::string& endpoint) {
    auto pulls = std::make_shared<PullClient>(
        bytes_received_, [this, rank](const grpc::Status& status) { OnStreamClosed(rank, status); });
    auto stream = std::make_shared<ClientStream<grpc::ByteBuffer>>(pulls);
    pulls->SetPort(stream);
    AddHello(hello_, &stream->context());
    DataStub stub(OpenChannel(endpoint, kMostDataBytes));
    stub.PrepareBidiStreamingCall(&stream->context(), "/heddle.ExecutorLink/Data", grpc::StubOptions(),
                                  stream.get());
    {
      const std::lock_guard lock(mutex_);
      ++open_streams_;
      peers_[rank].pulls = pulls;
      peers_[rank].data = stream;
    }
    stream->Start(stream);
  }

  void Queue(uint32_t rank, ControlFrame frame) {
    std::shared_ptr<StreamPort> port;
    {
      const std::lock_guard lock(mutex_);
      peers_[rank].outgoing.push_back(std::move(frame));
      port = peers_[rank].control;
    }
    if (port != nullptr) port->Wake();
  }

  void QueueForAll(const ControlFrame& frame) {
    for (uint32_t rank = 0; rank < peers_.size(); ++rank)
      if (static_cast<int>(rank) != hello_.rank) Queue(rank, frame);
  }

  // The value that `message` announces, when it is small enough to travel with it; else empty.
  std::string SmallValueOf(const actor::Message& message) {
    const Result<Value> value = handler_->Published(message.run, message.register_id, message.slot);
    if (!value.ok()) return "";  // a control register
    if (value->IsMatrix() && value->matrix().bytes() > kSmallValueBytes) return "";
    if (value->IsScalar() && value->scalar().IsString() &&
        static_cast<int64_t>(value->scalar().AsString().size()) > kSmallValueBytes)
      return "";
    std::string frames = EncodeValue(*value);
    bytes_sent_.fetch_add(static_cast<int64_t>(frames.size()), std::memory_order_relaxed);
    return frames;
  }

  void OnBatch(size_t rank, const MessageBatch& batch) {
    for (const SmallValue& small : batch.values()) {
      bytes_received_.fetch_add(static_cast<int64_t>(small.frames().size()), std::memory_order_relaxed);
      Result<Value> value = DecodeValue(small.frames());
      if (!value.ok()) continue;  // then it is pulled, and says why it cannot be
      const std::lock_guard lock(mutex_);
      auto& values = peers_[rank].small_values;
      values.erase(values.begin(), values.lower_bound({small.run(), 0, 0}));  // of runs that ended early
      values.insert_or_assign({small.run(), small.register_id(), small.slot()}, *std::move(value));
    }
    const std::string& bytes = batch.messages();
    for (size_t begin = 0; begin + sizeof(actor::Message) <= bytes.size(); begin += sizeof(actor::Message)) {
      actor::Message message;
      std::memcpy(static_cast<void*>(&message), bytes.data() + begin, sizeof(message));
      if (message.source.rank() == rank) handler_->OnMessage(message);  // nobody speaks for another
    }
  }

  bool AllLinked() const {
    for (size_t rank = 0; rank < peers_.size(); ++rank)
      if (static_cast<int>(rank) != hello_.rank && !peers_[rank].linked) return false;
    return true;
  }

  // The job cannot go on. The first cause counts.
  void Lose(const Status& why) {
    {
      const std::lock_guard lock(mutex_);
      if (!failure_.ok()) return;
      failure_ = why;
      changed_.notify_all();
    }
    if (on_failure_) on_failure_(why);
  }

  const Hello hello_;
  std::string endpoint_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  actor::LinkHandler* handler_ = nullptr;
  std::function<void(const Status&)> on_failure_;
  std::atomic<int64_t> bytes_sent_{0};
  std::atomic<int64_t> bytes_received_{0};
  std::atomic<int64_t> messages_sent_{0};

  std::mutex mutex_;  // Guards what follows; never held while a stream or the handler is called.
  std::condition_variable changed_;
  std::vector<Peer> peers_;  // by rank; the own entry is unused
  std::deque<std::string> decisions_;
  Status interrupted_;
  Status failure_;
  int open_streams_ = 0;  // that report OnStreamClosed
  bool closing_ = false;
};

bool ControlEnd::NextFrame(ControlFrame* frame) { return link_.NextControl(rank_, frame); }
void ControlEnd::OnFrame(ControlFrame& frame) { link_.OnControl(rank_, frame); }
void ControlEnd::OnClosed(const grpc::Status& status) { link_.OnStreamClosed(rank_, status); }

grpc::ServerBidiReactor<ControlFrame, ControlFrame>* Service::Control(grpc::CallbackServerContext* context) {
  return link_.AcceptControl(context);
}
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Service::Data(
    grpc::CallbackServerContext* context) {
  return link_.AcceptData(context);
}

}  // namespace

Result<std::unique_ptr<GrpcLink>> GrpcLink::Listen(const GrpcLinkOptions& options) {
  auto link = std::make_unique<LinkImpl>(options);
  HEDDLE_RETURN_IF_ERROR(link->Bind(options));
  return std::unique_ptr<GrpcLink>(std::move(link));
}

}  // namespace heddle::cluster
