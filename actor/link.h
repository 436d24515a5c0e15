// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "actor/message.h"
#include "core/values/value.h"

namespace heddle::actor {

/// The way to the other ranks of a run. Control messages are ordered per (source rank, destination rank) and
/// never carry bulk data; bodies are pulled by the consumer when it has a free slot, so receiver memory is
/// bounded by the plan.
class Link {
 public:
  virtual ~Link() = default;

  /// Queues a READY, ACK, EOS or IDLE for `rank`. Returns at once. Any thread.
  virtual void Send(uint32_t rank, const Message& message) = 0;

  /// Tells `rank` that `run` failed here, at `node` (kNoNode: no node is to blame), with the whole status:
  /// code, message, position and notes. Returns at once. Any thread.
  virtual void SendError(uint32_t rank, uint32_t run, NodeId node, const Status& status) = 0;

  /// Fetches the body that `rank` published in (run, register, slot) and hands it to `done`, on a thread of
  /// the link or before Pull returns. Scalars and shapes travel the same way. Returns at once. Any thread. A
  /// run that ends early abandons its pulls; `done` may be called later all the same, or never.
  virtual void Pull(uint32_t rank, uint32_t run, RegisterId register_id, uint8_t slot,
                    std::function<void(Result<Value>)> done) = 0;
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
