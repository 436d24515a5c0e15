// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/worker_connection.h"

#include <algorithm>

#include "cluster/master/master_wire.h"
#include "cluster/master/message_limits.h"
#include "cluster/security/rpc_security.h"
#include "core/environment/clock.h"
#include "engine/wire/value_wire.h"
#include "proto/master.grpc.pb.h"

namespace heddle::cluster {

WorkerConnection::WorkerConnection(WorkerDescription description, WorkerExecutors* executors,
                                   std::function<void()> on_change)
    : description_(std::move(description)), executors_(executors), on_change_(std::move(on_change)) {}

void WorkerConnection::Open(const std::shared_ptr<WorkerConnection>& connection,
                            const std::shared_ptr<grpc::Channel>& channel, const std::string& token) {
  auto stream = std::make_shared<ClientStream<WorkerFrame>>(connection);
  AddCaller(token, &stream->context());
  const std::unique_ptr<Workers::Stub> stub = Workers::NewStub(channel);
  // An executor may have news at any time, but nothing may be written before the call is made.
  const std::lock_guard lock(connection->stream_mutex_);
  stub->async()->Connect(&stream->context(), stream.get());
  stream->Start(stream);
  connection->stream_ = stream.get();
}

void WorkerConnection::Wake() {
  const std::lock_guard lock(stream_mutex_);
  if (stream_ != nullptr) stream_->Wake();
}

void WorkerConnection::Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    heartbeat_due_ = true;
  }
  Wake();
}

void WorkerConnection::Leave() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  const std::lock_guard lock(stream_mutex_);
  if (stream_ != nullptr) stream_->Finish();
}

void WorkerConnection::Abort() {
  const std::lock_guard lock(stream_mutex_);
  if (stream_ != nullptr) stream_->Abort();
}

WorkerConnection::State WorkerConnection::state() {
  const std::lock_guard lock(mutex_);
  return state_;
}

bool WorkerConnection::NextFrame(WorkerFrame* frame) {
  const std::lock_guard lock(mutex_);
  if (!introduced_) {
    introduced_ = true;
    introduced_ns_ = SystemClock().MonotonicNs();
    WorkerIntroduction* introduction = frame->mutable_introduction();
    ToProto(description_, introduction);
    for (const ExecutorNews& news : executors_->Introduce()) ToProto(news, introduction->add_executors());
    return true;
  }
  if (!state_.lease_ms) return false;
  if (leaving_) {
    if (said_goodbye_) return false;
    said_goodbye_ = true;
    frame->set_goodbye(true);
    return true;
  }
  if (heartbeat_due_) {
    heartbeat_due_ = false;
    frame->set_heartbeat_ns(SystemClock().MonotonicNs());
    return true;
  }
  const std::optional<ExecutorNews> report = executors_->NextReport();
  if (report) {
    ToProto(*report, frame->mutable_report());
    return true;
  }
  const std::optional<std::string> removed = executors_->NextRemoved();
  if (removed) frame->set_removed_checkpoints(*removed);
  if (removed) return true;
  std::optional<Swept> swept = executors_->NextSwept();
  if (swept) *frame->mutable_swept() = *std::move(swept);
  return swept.has_value();
}

void WorkerConnection::OnFrame(WorkerFrame& frame) {
  if (frame.has_order()) return executors_->Obey(frame.order());
  if (frame.has_sweep()) return executors_->Sweep(frame.sweep());
  const Status welcome = frame.has_welcome() ? CheckMessage(frame.welcome()) : OkStatus();
  {
    const std::lock_guard lock(mutex_);
    if (!welcome.ok()) {
      state_.refused = welcome;
    } else if (frame.has_welcome()) {
      state_.lease_ms = frame.welcome().ttl_ms();
      state_.heard_ns = introduced_ns_;
    }
    state_.heard_ns = std::max(state_.heard_ns, frame.heard_ns());
    if (!frame.refused().empty() && !engine::DecodeStatus(frame.refused(), &state_.refused).ok())
      state_.refused = Unavailable("the master refused this worker");
  }
  on_change_();
  Wake();
}

void WorkerConnection::OnDetached() {
  const std::lock_guard lock(stream_mutex_);
  stream_ = nullptr;
}

void WorkerConnection::OnClosed(const grpc::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    state_.closed = true;
    state_.status = status;
  }
  on_change_();
}

}  // namespace heddle::cluster
