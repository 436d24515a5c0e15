// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "actor/link.h"
#include "cluster/link/grpc_stream.h"
#include "engine/wire/value_wire.h"

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
  std::deque<engine::OutgoingValue> active_;
};

/// The end of data streams that pulls. Streams may follow one another: what has not arrived is asked for
/// again.
class PullClient : public StreamEvents<grpc::ByteBuffer> {
 public:
  using Done = std::function<void(Result<Value>)>;
  struct Events {
    std::function<void()> opened;  ///< The other end has answered.
    std::function<void(const grpc::Status& status)> closed;
  };
  /// `bytes_received` outlives the streams; so does what `events` needs.
  PullClient(std::atomic<int64_t>& bytes_received, Events events)
      : bytes_received_(bytes_received), events_(std::move(events)) {}

  /// Before a stream starts, and after the one before has closed: asks there for all that is missing.
  void Use(std::weak_ptr<StreamPort> port);
  /// No stream will follow: ends what is pending, and all later pulls, with `why`.
  void Fail(const Status& why);
  void Pull(uint32_t run, RegisterId register_id, uint8_t slot, Done done);

  bool NextFrame(grpc::ByteBuffer* frame) override;
  void OnFrame(grpc::ByteBuffer& frame) override;
  void OnOpened() override { events_.opened(); }
  void OnClosed(const grpc::Status& status) override { events_.closed(status); }

 private:
  struct Pending {
    engine::FrameHeader request;
    engine::IncomingValue value;
    Done done;
  };
  void AbortStream();
  Status Accept(const engine::FrameHeader& header, Pending& pending, const std::vector<grpc::Slice>& slices);

  std::atomic<int64_t>& bytes_received_;
  const Events events_;
  std::mutex mutex_;
  std::weak_ptr<StreamPort> port_;
  Status failure_;
  uint64_t next_request_ = 1;
  std::deque<engine::FrameHeader> requests_;              // not sent yet
  std::map<uint64_t, std::shared_ptr<Pending>> pending_;  // each touched by the reading thread only
};

}  // namespace heddle::cluster
