// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "actor/message.h"
#include "core/values/value.h"

namespace heddle::actor {

/// Messages that come through memory at which the thread that waits for them can look itself, so that no
/// other thread has to hand them over. A thread of the link looks there while no other one does.
class MessageInbox {
 public:
  virtual ~MessageInbox() = default;

  /// From now on, until End and a moment longer, the calling thread calls Deliver whenever it has nothing
  /// better to do, and sleeps at the doorbell alone. False: another thread has begun, and nothing changes.
  virtual bool Begin() = 0;
  virtual void End() = 0;
  /// Nobody is going to look for a while: the thread of the link does from now on. Any thread.
  virtual void HandBack() = 0;

  /// Whether Deliver has something to do.
  virtual bool HasMessages() const = 0;
  /// Hands all that has come to the LinkHandler, on the calling thread; false when there was nothing.
  virtual bool Deliver() = 0;
  /// Where the thread that has begun sleeps (doorbell.h); other processes ring it, too.
  virtual std::atomic<uint32_t>& doorbell() = 0;
};

/// The way to the other ranks of a run. Control messages are ordered per (source rank, destination rank) and
/// never carry bulk data; bodies are pulled by the consumer when it has a free slot, so receiver memory is
/// bounded by the plan.
class Link {
 public:
  virtual ~Link() = default;

  /// Queues READYs, ACKs, EOSs or IDLEs for `rank`, which travel together. Returns at once. Any thread.
  virtual void Send(uint32_t rank, std::span<const Message> messages) = 0;

  /// Tells `rank` that `run` failed here, at `node` (kNoNode: no node is to blame), with the whole status:
  /// code, message, position and notes. Returns at once. Any thread.
  virtual void SendError(uint32_t rank, uint32_t run, NodeId node, const Status& status) = 0;

  /// Fetches the body that `rank` published in (run, register, slot) and hands it to `done`, on a thread of
  /// the link or before Pull returns. Scalars and shapes travel the same way. Returns at once. Any thread. A
  /// run that ends early abandons its pulls; `done` may be called later all the same, or never.
  virtual void Pull(uint32_t rank, uint32_t run, RegisterId register_id, uint8_t slot,
                    std::function<void(Result<Value>)> done) = 0;
  /// The body that Pull would fetch, where it came with the message that announced it. Any thread.
  virtual std::optional<Value> TakeArrived(uint32_t /*rank*/, uint32_t /*run*/, RegisterId /*register_id*/,
                                           uint8_t /*slot*/) {
    return std::nullopt;
  }

  /// nullptr: threads of the link hand over all messages.
  virtual MessageInbox* inbox() { return nullptr; }
};

/// What a link needs of the runtime it serves. Called from the link's threads; none of these waits.
class LinkHandler {
 public:
  virtual ~LinkHandler() = default;
  virtual void OnMessage(const Message& message) = 0;
  /// `rank` said SendError. The run fails here too (also when this rank is not that far yet, or is through
  /// with it).
  virtual void OnError(uint32_t rank, uint32_t run, NodeId node, const Status& status) = 0;
  /// The published body, kept alive by the returned value. When nothing is published there (the run has
  /// failed here and an error is on its way to whoever asks) kCancelled, never a crash. Pull must hand that
  /// code through unchanged: the asker then waits for the error itself.
  virtual Result<Value> Published(uint32_t run, RegisterId register_id, uint8_t slot) = 0;
};

}  // namespace heddle::actor
