// SPDX-License-Identifier: Apache-2.0
#include "cluster/master_workers.h"

#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "cluster/grpc_stream.h"
#include "cluster/master_wire.h"
#include "cluster/message_limits.h"
#include "cluster/value_wire.h"
#include "core/log.h"

namespace heddle::cluster {
namespace {

class ConnectedWorker : public StreamEvents<WorkerFrame>,
                        public MasterHub::WorkerPort,
                        public std::enable_shared_from_this<ConnectedWorker> {
 public:
  ConnectedWorker(MasterHub* hub, std::string version) : hub_(hub), version_(std::move(version)) {}

  void Attach(StreamPort* stream) {
    const std::lock_guard lock(stream_mutex_);
    stream_ = stream;
  }

  // To the worker.
  bool NextFrame(WorkerFrame* frame) override {
    Outgoing next;
    {
      const std::lock_guard lock(mutex_);
      if (outgoing_.empty()) return false;
      next = std::move(outgoing_.front());
      outgoing_.pop_front();
    }
    *frame = std::move(next.frame);
    if (next.order) ToProto(*next.order, frame->mutable_order());
    return true;
  }
  // Under the hub's lock: the text of a long program is made when the order is sent.
  void Take(const WorkerOrder& order) override {
    const std::lock_guard lock(mutex_);
    outgoing_.emplace_back().order = order;
  }
  void Wake() override {
    const std::lock_guard lock(stream_mutex_);
    if (stream_ != nullptr) stream_->Wake();
  }

  // From the worker.
  void OnFrame(WorkerFrame& frame) override {
    if (frame.has_introduction()) return OnRegister(frame.introduction());
    if (uuid_.empty()) return Refuse(Internal("a worker spoke before it registered"));
    if (frame.heartbeat()) {
      const bool known = hub_->Call([&](MasterCore& core) { return core.WorkerHeard(uuid_); });
      if (!known) Abort();
    }
    if (frame.has_report()) {
      if (const Status status = CheckMessage(frame.report()); !status.ok()) return Refuse(status);
      const Result<ExecutorNews> news = FromProto(frame.report());
      if (!news.ok()) return Refuse(news.status());
      hub_->Call([&](MasterCore& core) {
        core.News(uuid_, *news);
        return true;
      });
    }
    if (frame.goodbye()) {
      hub_->Call([&](MasterCore& core) {
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
    if (uuid_.empty() || !hub_->Disconnect(uuid_, this)) return;
    hub_->Call([&](MasterCore& core) {
      core.WorkerDisconnected(uuid_);
      return true;
    });
  }

 private:
  void OnRegister(const WorkerIntroduction& message) {
    if (const Status status = CheckMessage(message); !status.ok()) return Refuse(status);
    WorkerDescription description = FromProto(message);
    description.version = version_;
    std::vector<ExecutorNews> executors;
    for (const ExecutorReport& report : message.executors()) {
      Result<ExecutorNews> news = FromProto(report);
      if (!news.ok()) return Refuse(news.status());
      executors.push_back(*std::move(news));
    }
    if (description.uuid.empty() || !uuid_.empty())
      return Refuse(Internal("a worker registered in a wrong way"));
    uuid_ = description.uuid;
    // The welcome goes first, orders behind it.
    hub_->Call([&](MasterCore& core) {
      const std::lock_guard lock(mutex_);
      Welcome* welcome = outgoing_.emplace_back().frame.mutable_welcome();
      welcome->set_ttl_ms(core.membership().ttl_ns() / 1'000'000);
      welcome->set_epoch(core.membership().epoch());
      return true;
    });
    hub_->Connect(uuid_, shared_from_this());
    hub_->Call([&](MasterCore& core) {
      core.WorkerConnected(description, executors);
      return true;
    });
    Wake();
  }

  void Refuse(const Status& why) {
    {
      const std::lock_guard lock(mutex_);
      outgoing_.emplace_back().frame.set_refused(EncodeStatus(why));
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
  const std::string version_;
  std::string uuid_;  // set by the first frame; frames come one at a time
  std::mutex mutex_;  // innermost
  std::deque<Outgoing> outgoing_;
  std::mutex stream_mutex_;
  StreamPort* stream_ = nullptr;
};

}  // namespace

grpc::ServerBidiReactor<WorkerFrame, WorkerFrame>* ServeWorker(MasterHub* hub,
                                                               grpc::CallbackServerContext* context) {
  const auto& metadata = context->client_metadata();
  const auto found = metadata.find("heddle-version");
  std::string version =
      found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
  auto connection = std::make_shared<ConnectedWorker>(hub, std::move(version));
  auto stream = std::make_shared<ServerStream<WorkerFrame>>(context, connection);
  connection->Attach(stream.get());
  stream->Start(stream);
  return stream.get();
}

}  // namespace heddle::cluster
