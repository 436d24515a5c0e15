// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/master_workers.h"

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "cluster/link/grpc_stream.h"
#include "cluster/master/master_wire.h"
#include "cluster/master/message_limits.h"
#include "cluster/master/worker_identity.h"
#include "cluster/network/newcomers.h"
#include "cluster/security/token.h"
#include "core/environment/log.h"
#include "engine/wire/value_wire.h"

namespace heddle::cluster {
namespace {

class ConnectedWorker : public StreamEvents<WorkerFrame>,
                        public MasterHub::WorkerPort,
                        public std::enable_shared_from_this<ConnectedWorker> {
 public:
  ConnectedWorker(MasterHub* hub, const AccessControl* access, Caller caller, std::string peer,
                  std::string version)
      : hub_(hub),
        access_(access),
        caller_(std::move(caller)),
        peer_(std::move(peer)),
        version_(std::move(version)) {}

  void Attach(StreamPort* stream) {
    const std::lock_guard lock(stream_mutex_);
    stream_ = stream;
  }

  // To the worker.
  bool NextFrame(WorkerFrame* frame) override {
    Outgoing next;
    {
      const std::lock_guard lock(mutex_);
      if (heard_ns_ != 0) {  // there is none before the welcome has gone
        frame->set_heard_ns(std::exchange(heard_ns_, 0));
        return true;
      }
      if (outgoing_.empty()) return false;
      next = std::move(outgoing_.front());
      outgoing_.pop_front();
    }
    *frame = std::move(next.frame);
    if (next.order && next.order->sweep)
      ToProto(*next.order->sweep, frame->mutable_sweep());
    else if (next.order)
      ToProto(*next.order, frame->mutable_order());
    return true;
  }
  // Under the hub's lock: the text of a long program is made when the order is sent.
  void Take(const WorkerOrder& order) override {
    const std::lock_guard lock(mutex_);
    outgoing_.emplace_back().order = order;
  }
  void End() override {
    const std::lock_guard lock(mutex_);
    replaced_ = true;
  }
  void Wake() override {
    const bool replaced = [&] {
      const std::lock_guard lock(mutex_);
      return replaced_;
    }();
    const std::lock_guard lock(stream_mutex_);
    if (stream_ == nullptr) return;
    replaced ? stream_->Abort() : stream_->Wake();
  }

  // From the worker.
  void OnFrame(WorkerFrame& frame) override {
    if (frame.has_introduction()) return OnRegister(frame.introduction());
    if (uuid_.empty()) return Refuse(Internal("a worker spoke before it registered"));
    if (frame.heartbeat_ns() != 0) OnHeartbeat(frame.heartbeat_ns());
    if (frame.has_report()) {
      if (const Status status = CheckMessage(frame.report()); !status.ok()) return Refuse(status);
      const Result<ExecutorNews> news = FromProto(frame.report());
      if (!news.ok()) return Refuse(news.status());
      if (!Tell([&](MasterCore& core) { return core.News(uuid_, *news); })) Abort();
    }
    if (!frame.removed_checkpoints().empty())
      Tell([&](MasterCore& core) {
        core.CheckpointsRemoved(frame.removed_checkpoints());
        return true;
      });
    if (frame.has_swept()) {
      if (const Status status = CheckMessage(frame.swept()); !status.ok()) return Refuse(status);
      hub_->sweeps().Take(uuid_, frame.swept());
    }
    if (frame.goodbye()) {
      Tell([&](MasterCore& core) {
        core.WorkerLeft(uuid_);
        return true;
      });
    }
  }

  void OnClosed(const grpc::Status&) override {
    {
      const std::lock_guard lock(stream_mutex_);
      stream_ = nullptr;
    }
    if (uuid_.empty()) return;
    hub_->Call([&](MasterCore& core) {
      if (hub_->Disconnect(uuid_, this)) core.WorkerDisconnected(uuid_);
      return true;
    });
  }

 private:
  // What comes over a connection that is not the worker's any more may be older than what came since.
  template <typename Function>
  bool Tell(const Function& function) {
    return hub_->Call([&](MasterCore& core) { return hub_->IsConnected(uuid_, this) && function(core); });
  }

  void OnHeartbeat(int64_t sent_ns) {
    if (!Tell([&](MasterCore& core) { return core.WorkerHeard(uuid_); })) return Abort();
    {
      const std::lock_guard lock(mutex_);
      heard_ns_ = sent_ns;
    }
    Wake();
  }

  void OnRegister(const WorkerIntroduction& message) {
    if (const Status status = CheckMessage(message); !status.ok()) return Refuse(status);
    WorkerDescription description = FromProto(message);
    description.version = version_;
    if (!uuid_.empty()) return Refuse(Internal("a worker registered twice"));
    if (Status status = CheckDescription(description); !status.ok()) return Refuse(status);
    std::vector<ExecutorNews> executors;
    for (const ExecutorReport& report : message.executors()) {
      Result<ExecutorNews> news = FromProto(report);
      if (!news.ok()) return Refuse(news.status());
      executors.push_back(*std::move(news));
    }
    description.uuid = UuidOf(description.secret);
    if (Status status = Identify(description); !status.ok()) return Refuse(status);
    const Status refused = hub_->Call([&](MasterCore& core) -> Status {
      HEDDLE_RETURN_IF_ERROR(core.MayConnect(description));
      {
        // The welcome goes first, orders behind it.
        const std::lock_guard lock(mutex_);
        Welcome* welcome = outgoing_.emplace_back().frame.mutable_welcome();
        welcome->set_ttl_ms(core.membership().ttl_ns() / 1'000'000);
        welcome->set_epoch(core.membership().epoch());
      }
      uuid_ = description.uuid;
      hub_->Connect(uuid_, shared_from_this());
      core.WorkerConnected(description, executors);
      return OkStatus();
    });
    if (refused.code() == StatusCode::kAborted) return Abort();
    if (!refused.ok()) return Refuse(refused);
    Wake();
  }

  // Whose connection it is. A token by which workers join says it of no worker.
  Status Identify(const WorkerDescription& description) {
    if (!caller_.uuid.empty()) {
      if (caller_.uuid == description.uuid) return OkStatus();
      return PermissionDenied("worker {} shows the secret of another worker", description.name);
    }
    Status joined = access_->tokens().Join(caller_, description.secret, description.name);
    access_->log().Write({.token = caller_.token,
                          .owner = caller_.owner,
                          .peer = peer_,
                          .rpc = "Workers.Connect",
                          .object = description.name,
                          .outcome = joined.ok() ? "OK" : "PERMISSION_DENIED",
                          .why = joined.ok() ? "a worker joins" : joined.message()});
    return joined;
  }

  void Refuse(const Status& why) {
    {
      const std::lock_guard lock(mutex_);
      outgoing_.emplace_back().frame.set_refused(engine::EncodeStatus(why));
    }
    Wake();
  }
  void Abort() {
    const std::lock_guard lock(stream_mutex_);
    if (stream_ != nullptr) stream_->Abort();
  }

  struct Outgoing {
    WorkerFrame frame;
    std::optional<WorkerOrder> order;  // instead of what is in the frame
  };

  MasterHub* hub_;
  const AccessControl* access_;
  const Caller caller_;
  const std::string peer_;
  const std::string version_;
  std::string uuid_;  // set by the first frame; frames come one at a time
  std::mutex mutex_;  // innermost
  std::deque<Outgoing> outgoing_;
  int64_t heard_ns_ = 0;  // of a heartbeat that waits for its answer
  bool replaced_ = false;
  std::mutex stream_mutex_;
  StreamPort* stream_ = nullptr;
};

}  // namespace

grpc::ServerBidiReactor<WorkerFrame, WorkerFrame>* ServeWorker(MasterHub* hub, const AccessControl* access,
                                                               Caller caller,
                                                               grpc::CallbackServerContext* context) {
  const auto& metadata = context->client_metadata();
  const auto found = metadata.find("heddle-version");
  std::string version =
      found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
  auto connection = std::make_shared<ConnectedWorker>(hub, access, std::move(caller),
                                                      DescribePeer(context->peer()), std::move(version));
  auto stream = std::make_shared<ServerStream<WorkerFrame>>(context, connection);
  connection->Attach(stream.get());
  stream->Start(stream);
  return stream.get();
}

}  // namespace heddle::cluster
