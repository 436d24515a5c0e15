// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "actor/link.h"
#include "cluster/link/announced_message.h"
#include "cluster/link/host_peers.h"
#include "cluster/link/record_ring.h"
#include "core/status.h"

namespace heddle::cluster {

/// Records between the executors of one machine, through memory that they share: no system call but to wake a
/// thread that sleeps, and no thread in between where the one that waits for a record looks itself.
///
/// Who looks: the thread that has called Begin, while it calls Deliver again and again, and sleeps at the
/// doorbell of the waiter. Some milliseconds after its last Deliver, or at once after HandBack, the thread of
/// this class takes over, which sleeps at a doorbell of its own; so runs of a few microseconds that follow
/// one another hand nothing to and fro. Thread-safe.
class HostMessages : public actor::MessageInbox {
 public:
  struct Events {
    /// A record of `rank`, in order for each rank. On the thread that looks.
    std::function<void(size_t rank, const std::string& record)> deliver;
    /// What a peer has written cannot be right. Once for each peer; nothing is read of it any more.
    std::function<void(size_t rank, const Status& why)> broken;
  };

  /// `peers` outlives it.
  explicit HostMessages(const HostPeers& peers);
  ~HostMessages() override { Stop(); }

  /// Before any peer can have found this rank and sends something. What `events` needs outlives this.
  void Serve(Events events);
  /// Ends the thread: no events follow.
  void Stop();

  /// Sends messages, a record of message and value each, as one write: all that there is room for; the rest
  /// follows when there is. Never waits. Only to ranks that are reached.
  void Send(size_t rank, std::span<const AnnouncedMessage> messages);

  bool Begin() override;
  void End() override { is_begun_.store(false, std::memory_order_seq_cst); }
  void HandBack() override;
  bool HasMessages() const override;
  bool Deliver() override;
  std::atomic<uint32_t>& doorbell() override { return own_.doorbell_of_waiter(); }

  /// How often a peer slept and was woken.
  int64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }

 private:
  struct Peer {
    std::optional<RingReader> reader;
    std::atomic<bool> is_broken{false};
    std::mutex mutex;                  // Guards what follows.
    std::optional<RingWriter> writer;  // From the first message on.
    std::deque<std::string> left;      // Records for which there was no room.
  };

  bool SendLeft(Peer& peer);  // Under its mutex.
  bool CanSendLeft() const;
  void RingPeer(size_t rank);
  bool Read(size_t rank, Peer& peer);
  void Look();
  void LetOthersLook();

  const HostPeers& host_;
  const SharedInbox& own_;
  mutable std::vector<Peer> peers_;  // By rank.
  std::atomic<int> peers_with_left_{0};
  std::atomic<uint64_t> looks_{0};  // Calls of Begin and Deliver by others than the thread.
  std::atomic<bool> is_begun_{false};
  std::atomic<bool> thread_looks_{true};  // Whether the thread is to look; else others do.
  std::mutex delivery_;                   // Held while records are handed over.
  std::string record_;                    // Under it.
  Events events_;
  std::atomic<int64_t> wakes_{0};
  std::atomic<uint32_t> patience_{0};  // A doorbell: the thread sleeps there while others look.
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace heddle::cluster
