// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "cluster/link/shared_inbox.h"
#include "cluster/security/grpc_hello.h"
#include "core/environment/descriptor.h"
#include "core/status.h"

namespace heddle::cluster {

/// How the executors of one attempt that are on one machine get at each other's inboxes: each of them answers
/// at a unix socket without a file, whose name follows from the secret of the attempt, and hands its inbox to
/// processes of the same user that know the secret.
class InboxExchange {
 public:
  /// Called when a peer has been given the inbox, with that of the peer. On the thread of the exchange,
  /// before the peer has it.
  using OnPeer = std::function<void(size_t rank, std::unique_ptr<SharedInbox> inbox)>;

  /// Answers peers of `own` from now on. `own_inbox` outlives it. kUnavailable when the system refuses.
  static Result<std::unique_ptr<InboxExchange>> Listen(const Hello& own, const SharedInbox& own_inbox,
                                                       OnPeer on_peer);
  ~InboxExchange();

  /// The inbox of another rank, which has called Listen; nullptr when it is not on this machine, or not to be
  /// trusted.
  std::unique_ptr<SharedInbox> Ask(size_t rank) const;

 private:
  InboxExchange(const Hello& own, const SharedInbox& own_inbox, OnPeer on_peer);
  /// Of what rank `from` and rank `to` of the attempt alone can say of `what`.
  std::string SecretOf(std::string_view what, size_t from, size_t to) const;
  std::string NameOf(size_t rank) const;
  void Answer();
  void AnswerOne(const Descriptor& peer);

  const std::string key_;
  const size_t rank_;
  const size_t ranks_;
  const SharedInbox& own_inbox_;
  const OnPeer on_peer_;
  Descriptor listening_;
  std::thread thread_;
};

}  // namespace heddle::cluster
