// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "actor/link.h"
#include "cluster/link/announced_message.h"
#include "cluster/link/control_frames.h"
#include "cluster/link/grpc_link.h"
#include "cluster/link/grpc_pull.h"
#include "cluster/link/link_calls.h"
#include "cluster/link/link_repair.h"

namespace heddle::cluster {

/// What connections report. Called on their threads, without a lock of theirs that could be needed meanwhile.
class ConnectionEvents {
 public:
  virtual ~ConnectionEvents() = default;
  /// A frame of `rank`: each once and in order, one at a time for each rank.
  virtual void OnFrame(size_t rank, const ControlFrame& frame) = 0;
  /// A peer refused to talk (kPermissionDenied) or cannot be reached (kUnavailable).
  virtual void OnLoss(const Status& why) = 0;
  /// One of the questions below may have another answer.
  virtual void OnProgress() = 0;
};

/// The streams of one executor to all others: opened, answered, mended when they break, and closed.
/// Thread-safe.
class PeerConnections : private LinkCalls {
 public:
  /// `events` and `repairs`, `bytes_sent`, `bytes_received` outlive it.
  struct Counters {
    std::atomic<int64_t> bytes_sent{0};
    std::atomic<int64_t> bytes_received{0};
    std::atomic<int64_t> bytes_shared{0};
    std::atomic<int64_t> repairs{0};
  };
  PeerConnections(const Hello& hello, int64_t repair_ms, ConnectionEvents* events, Counters* counters);
  /// Ends all streams; when it returns gRPC has done with them.
  ~PeerConnections() override;

  Status Listen(const std::string& address);
  const std::string& endpoint() const { return server_->endpoint(); }
  const std::string& certificate() const { return server_->certificate(); }
  /// Who answers the pulls of peers. Before they know the endpoint.
  void SetHandler(actor::LinkHandler* handler);
  /// Begins to open streams to all peers. Once.
  Status Open(const std::vector<LinkPeer>& peers);
  std::string NameOf(size_t rank) const;

  /// Sends a frame when that is possible, and until it has arrived.
  void Push(size_t rank, ControlFrame frame);
  void PushToAll(const ControlFrame& frame);
  /// Sends messages and the values that they announce, together with others that wait.
  void PushMessages(size_t rank, std::span<const AnnouncedMessage> messages);
  /// Over the data stream.
  void Pull(size_t rank, uint32_t run, RegisterId register_id, uint8_t slot, PullClient::Done done);

  bool AllLinked() const;     ///< Control streams stand, or stood when the peer ended.
  bool AllHaveHeard() const;  ///< Every peer got all frames, or cannot be reached at present.
  bool AllHaveEnded() const;  ///< Every peer said its last word and got ours, or has gone.
  size_t FirstNotLinked() const;
  /// Mends nothing any more; pulls fail with `why`.
  void GiveUp(const Status& why);

 private:
  class ControlEnd;
  struct Peer {
    std::mutex
        delivery;  // held while a frame is handed on, so that no later one overtakes it; taken before mutex_
    // Under mutex_.
    LinkPeer address;
    ControlFrames frames;
    uint64_t connection = 0;  // number of the present control stream; those before are not heard any more
    std::shared_ptr<StreamPort> control;  // nullptr until the first stream
    LinkRepair control_repair;
    std::shared_ptr<PullClient> pulls;  // set by Open
    std::shared_ptr<StreamPort> data;
    LinkRepair data_repair;
    bool ended = false;  // its program has: it may go
    bool gone = false;   // it has ended and cannot be reached
  };

  ControlReactor* AcceptControl(grpc::CallbackServerContext* context, int rank) override;
  DataReactor* AcceptData(grpc::CallbackServerContext* context, int rank) override;
  void Attach(size_t rank, std::shared_ptr<StreamPort> port);
  Status DialControl(size_t rank);
  Status DialData(size_t rank);
  std::shared_ptr<PullClient> MakePulls(size_t rank);

  bool NextControl(size_t rank, uint64_t connection, ControlFrame* frame);
  void OnControl(size_t rank, uint64_t connection, const ControlFrame& frame);
  void Break(Peer& peer, LinkRepair& repair, bool calls, const grpc::Status& status);
  template <typename NoteBreak>
  void OnStreamClosed(size_t rank, const grpc::Status& status, const NoteBreak& note_break);
  void Watch();
  bool FindRepairs(std::vector<size_t>* control_calls, std::vector<size_t>* data_calls, Status* loss,
                   int64_t* wait_ns);

  bool IsOwn(size_t rank) const { return static_cast<int>(rank) == hello_.rank; }
  bool Calls(size_t rank) const { return static_cast<int>(rank) < hello_.rank; }  // the control stream
  template <typename Predicate>
  bool AllPeers(const Predicate& predicate) const;

  const Hello hello_;
  const int64_t repair_ns_;
  ConnectionEvents* const events_;
  Counters* const counters_;

  mutable std::mutex
      mutex_;  // Guards what follows; never held while a stream, events or the handler are called.
  std::condition_variable closed_;
  std::condition_variable watch_;
  actor::LinkHandler* handler_ = nullptr;
  std::vector<Peer> peers_;  // by rank; the own entry is unused
  int open_streams_ = 0;     // that report OnStreamClosed
  bool gave_up_ = false;
  bool closing_ = false;
  std::thread watcher_;
  std::unique_ptr<LinkServer> server_;  // goes first
};

}  // namespace heddle::cluster
