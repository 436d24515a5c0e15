// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actor/message.h"
#include "actor/plan_instance.h"
#include "actor/protocol.h"

namespace heddle::actor {

/// What one thread has to send to other ranks, so that all messages it makes for a rank while it goes through
/// its mailbox travel as one.
///
/// A rank that sleeps should be woken only for what lets it go on. In a plan whose tasks act once, an ACK
/// lets nobody act, it only lets a rank end the run; and a rank that is still owed the end of an edge cannot
/// do that. So ACKs wait here for what else the rank is to get, which is at the latest the end of the last
/// edge to it. An EOS does not wait: the ends of edges follow from each other, also from rank to rank and
/// back, and none would come if two ranks kept theirs for each other. Not thread-safe.
class OutgoingMessages {
 public:
  /// Of the run of `instance`, which this thread alone serves, from now on; nullptr: of any runs, and nothing
  /// waits. What a run has left behind is dropped.
  void Begin(const PlanInstance* instance) {
    peers_.clear();
    waiting_.clear();
    may_wait_ = instance != nullptr && instance->acts_once();
    if (!may_wait_) return;
    peers_.resize(instance->edges_to().size());
    for (size_t rank = 0; rank < peers_.size(); ++rank) peers_[rank].open_edges = instance->edges_to()[rank];
  }

  void Add(const Message& message) {
    const uint32_t rank = message.destination.rank();
    if (rank >= peers_.size()) peers_.resize(rank + 1);
    Peer& peer = peers_[rank];
    if (peer.messages.empty()) waiting_.push_back(rank);
    peer.messages.push_back(message);
    peer.open_edges -= message.type == MessageType::kEos;
    peer.is_urgent |= !MayWait(message.type == MessageType::kReady, message.type == MessageType::kEos);
    has_urgent_ |= peer.is_urgent || !may_wait_ || !MoreIsToCome(peer.open_edges);
  }
  /// Whether Flush has something to send.
  bool IsDue() const { return has_urgent_; }
  /// Calls send(rank, messages) for each rank that has to get some now.
  template <typename Send>
  void Flush(const Send& send) {
    if (!has_urgent_) return;
    has_urgent_ = false;
    std::erase_if(waiting_, [&](uint32_t rank) {
      Peer& peer = peers_[rank];
      if (may_wait_ && !peer.is_urgent && MoreIsToCome(peer.open_edges)) return false;
      send(rank, std::span<const Message>(peer.messages));
      peer.messages.clear();
      peer.is_urgent = false;
      return true;
    });
  }

 private:
  friend class ActorSnapshot;  // tests/models
  struct Peer {
    std::vector<Message> messages;
    int64_t open_edges = 0;  ///< Edges to the rank whose EOS has not been added.
    bool is_urgent = false;
  };
  std::vector<Peer> peers_;        ///< By rank.
  std::vector<uint32_t> waiting_;  ///< Ranks with messages.
  bool may_wait_ = false;
  bool has_urgent_ = false;
};

}  // namespace heddle::actor
