// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "actor/link.h"
#include "cluster/grpc_stream.h"
#include "cluster/value_wire.h"

namespace heddle::cluster {

/// The end of a data stream that answers pulls: several values at once, a frame of each in turn, so that a
/// large value does not hold up a small one. One frame is on its way at a time; payloads are sent from matrix
/// memory.
class PullServer : public StreamEvents<grpc::ByteBuffer> {
 public:
  /// `handler` and `bytes_sent` outlive the stream.
  PullServer(actor::LinkHandler& handler, std::atomic<int64_t>& bytes_sent)
      : handler_(handler), bytes_sent_(bytes_sent) {}
  void SetPort(std::weak_ptr<StreamPort> port) { port_ = std::move(port); }

  bool NextFrame(grpc::ByteBuffer* frame) override;
  void OnFrame(grpc::ByteBuffer& frame) override;
  void OnClosed(const grpc::Status& status) override;

 private:
  actor::LinkHandler& handler_;
  std::atomic<int64_t>& bytes_sent_;
  std::weak_ptr<StreamPort> port_;
  std::mutex mutex_;
  std::deque<OutgoingValue> active_;
};

/// The end of a data stream that pulls.
class PullClient : public StreamEvents<grpc::ByteBuffer> {
 public:
  using Done = std::function<void(Result<Value>)>;
  /// `bytes_received` outlives the stream; `on_closed` is called once, after the stream has ended.
  PullClient(std::atomic<int64_t>& bytes_received, std::function<void(const grpc::Status&)> on_closed)
      : bytes_received_(bytes_received), on_closed_(std::move(on_closed)) {}
  void SetPort(std::weak_ptr<StreamPort> port) { port_ = std::move(port); }

  void Pull(uint32_t run, RegisterId register_id, uint8_t slot, Done done);

  bool NextFrame(grpc::ByteBuffer* frame) override;
  void OnFrame(grpc::ByteBuffer& frame) override;
  void OnClosed(const grpc::Status& status) override;

 private:
  struct Pending {
    IncomingValue value;
    Done done;
  };
  Status Accept(const FrameHeader& header, Pending& pending, const std::vector<grpc::Slice>& slices);

  std::atomic<int64_t>& bytes_received_;
  std::function<void(const grpc::Status&)> on_closed_;
  std::weak_ptr<StreamPort> port_;
  std::mutex mutex_;
  bool closed_ = false;
  uint64_t next_request_ = 1;
  std::deque<FrameHeader> requests_;                                // not sent yet
  std::unordered_map<uint64_t, std::shared_ptr<Pending>> pending_;  // each touched by the reading thread only
};

}  // namespace heddle::cluster
