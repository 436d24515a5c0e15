// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actor/link.h"
#include "cluster/link/host_peers.h"
#include "cluster/link/record_ring.h"
#include "core/status.h"
#include "engine/wire/value_wire.h"

namespace heddle::cluster {

/// Pulls of values between the executors of one machine, through memory that they share (docs/transport.md).
/// A thread answers the pulls of peers, another one takes in what this rank has pulled. Thread-safe.
class HostValues {
 public:
  using Done = std::function<void(Result<Value>)>;
  struct Events {
    /// A pull that has to go another way. Called without a lock, on any thread.
    std::function<void(size_t rank, uint32_t run, RegisterId register_id, uint8_t slot, Done done)> elsewhere;
    /// What a peer has written cannot be right. Once for each peer at each end; nothing is read of it any
    /// more.
    std::function<void(size_t rank, const Status& why)> broken;
  };
  /// All payload, and that which came this way.
  struct Counters {
    std::atomic<int64_t>* bytes_sent;
    std::atomic<int64_t>* bytes_received;
    std::atomic<int64_t>* bytes_shared;
  };

  /// All that is given outlives it.
  HostValues(const HostPeers& peers, Counters counters);
  ~HostValues();

  /// Before any peer can have found this rank: who knows the values of this rank.
  void Serve(actor::LinkHandler* handler, Events events);
  /// Ends the threads: no events follow.
  void Stop();

  /// Takes over a pull, and `done` with it. False, with `done` as it was, where no memory is shared with
  /// `rank`.
  bool Pull(size_t rank, uint32_t run, RegisterId register_id, uint8_t slot, Done* done);
  /// Ends what is pending, and all later pulls, with `why`.
  void Fail(const Status& why);

 private:
  // A value on its way. `value` is touched by the thread that takes values in only.
  struct Pending {
    engine::FrameHeader request;
    engine::IncomingValue value;
    Done done;
  };
  enum class Room : uint8_t { kUnknown, kBeingReserved, kReserved, kNone };
  struct Peer {
    // Under mutex_: what this rank pulls.
    Room room = Room::kUnknown;
    std::optional<RingWriter> pulls;         // Once there is room.
    std::deque<engine::FrameHeader> unsent;  // For which there was no room.
    std::map<uint64_t, std::shared_ptr<Pending>> pending;
    // Of the thread that takes values in.
    std::optional<RingReader> incoming;
    bool is_client_broken = false;
    // Of the thread that answers.
    std::optional<RingReader> asked;
    std::optional<RingWriter> outgoing;
    std::deque<engine::OutgoingValue> active;
    bool is_server_broken = false;
  };

  bool ReserveRing(size_t rank) const;
  void OpenRing(size_t rank, Peer& peer);
  void PullElsewhere(size_t rank, Pending& pull);
  void SendPulls(size_t rank, Peer& peer);

  void TakeAll();
  bool TakeSome(size_t rank, Peer& peer);
  Status TakeFrame(size_t rank, Peer& peer, size_t record_bytes);
  bool CanSendPulls(Peer& peer);

  void AnswerAll();
  bool ReadPulls(size_t rank, Peer& peer);
  Status AcceptPull(size_t rank, Peer& peer);
  bool SendFrames(size_t rank, Peer& peer);
  bool SendFrame(size_t rank, Peer& peer);
  bool CanSendFrame(const Peer& peer) const { return !peer.active.empty() && peer.outgoing->HasRoom(); }

  const HostPeers& host_;
  const SharedInbox& own_;
  const int64_t ring_bytes_;
  const Counters counters_;
  Events events_;
  actor::LinkHandler* handler_ = nullptr;
  std::mutex mutex_;  // Never held while events or `done` are called.
  Status failure_;
  uint64_t next_request_ = 1;
  int64_t charged_bytes_ = 0;
  std::vector<Peer> peers_;  // By rank.
  std::atomic<bool> stops_{false};
  std::thread server_;
  std::thread client_;
};

}  // namespace heddle::cluster
