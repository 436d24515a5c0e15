// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "cluster/link/grpc_stream.h"
#include "cluster/placement/membership.h"
#include "cluster/worker/worker_executors.h"
#include "core/status.h"
#include "proto/master.pb.h"

namespace heddle::cluster {

/// One connection of a worker to the master, from introduction to its end.
class WorkerConnection : public StreamEvents<WorkerFrame> {
 public:
  /// `executors` and what `on_change` needs outlive it. on_change is called, without a lock held, when the
  /// state changed.
  WorkerConnection(WorkerDescription description, WorkerExecutors* executors,
                   std::function<void()> on_change);

  /// Opens the stream of a new connection.
  static void Open(const std::shared_ptr<WorkerConnection>& connection,
                   const std::shared_ptr<grpc::Channel>& channel, const std::string& token);

  void Wake();       ///< There may be a report to send.
  void Heartbeat();  ///< Sends one.
  void Leave();      ///< Says goodbye and ends the stream.
  void Abort();

  /// How it stands. `lease_ms` is known once the master has welcomed the worker.
  struct State {
    bool closed = false;
    std::optional<int64_t> lease_ms;
    int64_t heard_ns = 0;  ///< When the last frame was sent that the master has answered: by SystemClock().
    Status refused;        ///< The master does not want this worker.
    grpc::Status status;   ///< Why it was closed.
  };
  State state();

  bool NextFrame(WorkerFrame* frame) override;
  void OnFrame(WorkerFrame& frame) override;
  void OnDetached() override;
  void OnClosed(const grpc::Status& status) override;

 private:
  const WorkerDescription description_;
  WorkerExecutors* const executors_;
  const std::function<void()> on_change_;
  std::mutex mutex_;  // innermost but for that of the executors
  State state_;
  bool introduced_ = false;
  int64_t introduced_ns_ = 0;
  bool heartbeat_due_ = false;
  bool leaving_ = false;
  bool said_goodbye_ = false;
  std::mutex stream_mutex_;
  StreamPort* stream_ = nullptr;
};

}  // namespace heddle::cluster
