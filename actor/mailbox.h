// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "actor/link.h"
#include "actor/message.h"

namespace heddle::actor {

/// Messages from other threads to one stream's thread: any number of senders, one receiver, in order per
/// sender.
///
/// Senders append to a vector under a lock held for a few instructions; the receiver swaps the whole vector
/// out, so in steady state nothing is allocated. A futex call is made only when the receiver sleeps.
class Mailbox {
 public:
  /// Any thread.
  void Post(const Message& message);

  /// Moves all messages to the end of the empty `*messages`; false, without a lock, when there are none.
  /// Receiver only.
  bool Take(std::vector<Message>* messages);

  /// Returns when there is a message (true) or `timeout_ns` have passed (false). Looks for at most `spin_ns`
  /// before it sleeps. With `inbox`, which the receiver has begun to look at, also when that has messages.
  /// Receiver only.
  bool Wait(int64_t spin_ns, int64_t timeout_ns, MessageInbox* inbox = nullptr);

 private:
  bool HasMessages(const MessageInbox* inbox) const {
    return count_.load(std::memory_order_seq_cst) != 0 || (inbox != nullptr && inbox->HasMessages());
  }

  std::mutex mutex_;
  std::vector<Message> messages_;
  std::atomic<uint32_t> count_{0};
  std::atomic<uint32_t> doorbell_{0};
  /// Where the receiver sleeps: at its own doorbell or at that of an inbox. Changed by the receiver only.
  std::atomic<std::atomic<uint32_t>*> sleeps_at_{&doorbell_};
};

/// What it costs to wake a thread that sleeps in Wait, measured once per process: the only spin worth its
/// time is about one such hand-over (runtime reference 2.9). 0, without measuring, on a machine with fewer
/// than 4 cores, where a spinning thread takes the core that the awaited one needs.
int64_t HandOverNs();

}  // namespace heddle::actor
