// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cluster/link/shared_inbox.h"
#include "cluster/security/grpc_hello.h"
#include "core/environment/descriptor.h"
#include "core/status.h"

namespace heddle::cluster {

/// Which executors of one attempt are on this machine, and the memory that they share: each of them answers
/// at a unix socket without a file, whose name follows from the secret of the attempt. Each pair exchanges
/// its inboxes once, over one connection, if both are processes of one user and know the secret. Messages
/// (host_messages.h) and values (host_values.h) go through that memory.
class HostPeers {
 public:
  /// Answers peers of `own` from now on. kUnavailable when the system refuses the socket or the memory.
  static Result<std::unique_ptr<HostPeers>> Listen(const Hello& own);
  ~HostPeers();

  /// Asks the smaller ranks, all of which have called Listen; the larger ones ask this one. When it returns,
  /// those that it asked know whether they reach this rank, but for one that has said nothing for two
  /// seconds.
  void FindPeers();
  /// From now on no other peer is reached, so that what is sent to one goes the same way all the time.
  void Settle();

  size_t rank() const { return rank_; }
  size_t ranks() const { return peers_.size(); }
  const SharedInbox& own() const { return *own_; }
  /// Whether memory is shared with `rank`: it reads what this rank writes to its inbox, and answers there.
  bool Reaches(size_t rank) const { return peers_[rank].is_reached.load(std::memory_order_acquire); }
  bool ReachesAny() const;
  /// The inbox of a rank that is reached, or has written to that of this rank; nullptr of all others.
  const SharedInbox* inbox(size_t rank) const { return peers_[rank].shown.load(std::memory_order_acquire); }

 private:
  struct Peer {
    std::unique_ptr<SharedInbox> inbox;  // Set once.
    std::atomic<const SharedInbox*> shown{nullptr};
    std::atomic<bool> is_reached{false};
  };

  /// A connection to a peer, and how far the exchange is.
  struct Call {
    enum class WaitsFor : uint8_t { kQuestion, kLastWord, kAnswer, kEnd };
    Descriptor socket;
    WaitsFor waits_for;
    size_t rank = 0;       ///< Of the peer; 0 while it waits for a question.
    int64_t until_ns = 0;  ///< Then the call is over.
  };

  HostPeers(const Hello& own, std::unique_ptr<SharedInbox> inbox);
  /// Of what rank `from` and rank `to` of the attempt alone can say of `what`.
  std::string SecretOf(std::string_view what, size_t from, size_t to) const;
  std::string NameOf(size_t rank) const;
  void Answer();
  bool LetIn(std::vector<Call>* calls) const;
  void Ask(size_t rank, std::vector<Call>* calls) const;
  void HearAll(std::vector<Call>* calls, const pollfd* polled);
  bool Hear(Call* call);
  bool HearQuestion(Call* call, std::string_view said, const Descriptor& inbox);
  Status Take(size_t rank, const Descriptor& inbox);
  void Reach(size_t rank);

  const std::string key_;
  const size_t rank_;
  const std::unique_ptr<SharedInbox> own_;
  std::vector<Peer> peers_;  // By rank.
  std::mutex mutex_;
  bool is_settled_ = false;  // Under it.
  Descriptor listening_;
  Descriptor stop_;  // Readable when the thread is to end.
  std::thread thread_;
};

}  // namespace heddle::cluster
